"""Tag schemes: the letter that each writes before the label of an entity, and what it means."""

# How each scheme writes the roles of a word: B begins an entity, I is inside, E ends it, S is an
# entity of one word.
SPELLINGS = {
    "IOB1": "BI",
    "IOB2": "BI",
    "IOBES": "BIES",
    "BIOES": "BIES",
    "BMES": "BMES",
    "BILOU": "BILU",
}
# The role of each letter, by scheme, and whatever the scheme is.
ROLES = {scheme: dict(zip(letters, "BIES")) for scheme, letters in SPELLINGS.items()}
ANY_ROLES = {letter: role for roles in ROLES.values() for letter, role in roles.items()}
