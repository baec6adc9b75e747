"""Pictures and prompts to unit features; the only room that imports torch, and only inside functions."""
