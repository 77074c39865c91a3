"""The protocols Fyke speaks, one module each, and the registry that picks among them."""
