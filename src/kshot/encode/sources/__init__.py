"""Where pictures come from: folders, CSV files, webdataset shards on disk or over HTTP."""
