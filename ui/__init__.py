"""Qt widgets: a client of the server like any editor."""
