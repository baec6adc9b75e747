"""Reference points: methods that look at data a deployed system would not have."""
