"""What would this policy do to that web? The real frontier and workbench, on a virtual clock and a virtual web."""
