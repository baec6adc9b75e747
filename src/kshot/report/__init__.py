"""Tables, figures and one page; the input is a table."""
