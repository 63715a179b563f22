"""Names of other libraries that these do not call public, one file a library, with the versions they were seen in."""
