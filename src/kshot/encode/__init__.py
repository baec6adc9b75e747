"""Pictures and prompts to unit features; the only room that imports torch, and only inside functions.

`encoders` loads one by name (`openclip`, `lite`, `vision`), `sources` finds pictures, `prompts` makes the tiers,
`encoding` runs them into the store, `caches` imports features that exist, `open` builds the open sets.
"""
