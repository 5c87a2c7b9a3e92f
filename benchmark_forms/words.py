"""The words that forms are written with. Short ones serve the `small` and `tiny` settings."""

from __future__ import annotations

PEOPLE = (
    "Nadia", "Tomas", "Ingrid", "Kofi", "Mara", "Jonas", "Leila", "Pavel", "Rosa", "Emre", "Hana", "Victor",
    "Amara", "Felix", "Greta", "Samir", "Olga", "Bruno", "Yuki", "Clara", "Dario", "Elif", "Marek", "Sunita",
)  # fmt: skip
SURNAMES = (
    "Berg", "Okafor", "Lindqvist", "Moreau", "Castellanos", "Haddad", "Novak", "Tanaka", "Fischer", "Mensah",
    "Alvarez", "Rossi", "Kowalski", "Dumont", "Eriksen", "Petrova",
)  # fmt: skip
SHORT_PEOPLE = ("Ana", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Ida", "Kim", "Leo", "Mia", "Ned", "Pia", "Sam")
PLACES = ("Harbour", "Mill Lane", "Northgate", "Old Town", "Quayside", "Riverside", "Station", "Westfield")
SHORT_PLACES = ("north", "south", "east", "west", "hill", "lake")
COLOURS = ("red", "blue", "green", "black", "white", "grey")
GOODS = (
    "desk lamp", "kettle", "backpack", "headset", "office chair", "keyboard", "toaster", "raincoat", "monitor",
    "bookshelf", "printer", "blender", "tripod", "suitcase",
)  # fmt: skip
SHORT_GOODS = ("lamp", "chair", "bag", "coat", "desk", "fan", "cup", "hat")
SUPPLIES = (
    "pens", "folders", "envelopes", "batteries", "labels", "markers", "notebooks", "staples", "badges", "cables",
    "towels", "filters",
)  # fmt: skip
SHORT_SUPPLIES = ("pens", "cups", "pads", "caps", "bags", "nuts")
TEAMS = ("Atlas", "Beacon", "Cobalt", "Delta", "Ember", "Falcon", "Garnet", "Harvest", "Indigo", "Juniper")
COMPANIES = (
    "Alder & Co", "Brightwater", "Cedar Works", "Dunmore", "Eastvale", "Fernhill", "Greystone", "Hollis Group",
    "Ironbridge", "Juno Supply", "Kestrel", "Larkfield",
)  # fmt: skip
PHRASES = (
    "Please call before noon", "Keep away from water", "Signature needed at the desk", "Use the rear entrance",
    "Two people must lift it", "Ring the bell twice", "Ask for the shift lead", "Store in a dry place",
    "Bring a proof of address", "Leave it with the porter", "Weigh it again on arrival", "No delivery on Fridays",
)  # fmt: skip
MONTH_DAYS = 28  # every month has them, so a drawn date is always a real one

# Labels of controls that a task forbids, and of the ones that end it.
FORBIDDEN = (
    "Delete record", "Escalate", "Export all", "Archive case", "Send to everyone", "Approve all", "Share publicly",
    "Print labels", "Close account", "Duplicate entry", "Unlock form", "Skip checks", "Override limits",
    "Notify manager", "Merge records", "Clear history", "Assign to me", "Request access",
)  # fmt: skip
SHORT_FORBIDDEN = ("Delete", "Escalate", "Export", "Archive", "Share", "Print", "Merge", "Unlock", "Copy", "Lock")
FINAL = ("Submit", "Save", "Send form", "Save changes", "Confirm", "Record entry", "File it", "Send in")
SHORT_FINAL = ("Submit", "Save", "Send", "Confirm")
REVIEW = ("Review", "Review changes", "Check entries", "Preview changes")
SHORT_REVIEW = ("Review", "Check")
COMMIT = ("Commit", "Commit changes", "Apply", "Publish")
SHORT_COMMIT = ("Commit", "Apply")


def article(noun: str) -> str:
    """The noun with `a` or `an`."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
