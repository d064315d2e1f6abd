"""Routes: from requests to the verbs of the engine, one file per group."""
