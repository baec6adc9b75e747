"""How many shots each class gets: a field of every cell."""

BALANCED = "balanced"
# What a study's shots K mean under each profile; `kshot.data.draw` draws them.
PROFILES = {
    BALANCED: "K pictures of every class",
    "long-tailed": "from K pictures of one class down to one of another, falling geometrically",
    "collected": "K pictures of the class that was collected most, of the others in proportion, at least one",
    "missing": "K pictures of three classes in four, none of the rest: these have text only",
}
# Base to new (Zhou et al., Conditional prompt learning for vision-language models, CVPR 2022): K pictures of the first
# half of the classes, and the test asks for one half only.
HALVES = {
    "base": "the classes that have shots, among themselves",
    "new": "the other classes, among themselves: their text is all that is known of them",
}
