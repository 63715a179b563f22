"""The parts of an index, a folder each: how a representation of documents is made, opened and searched."""
