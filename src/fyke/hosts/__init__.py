"""What do we know of this host? Its address, its rules, how gently it wants to be treated.

A host is met in this order: `dns` finds its address, `robots` says what may be fetched there,
`politeness` when; `book` remembers all three on disk.
"""
