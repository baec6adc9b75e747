"""Everything that exists because of one publication: its claims, the rules that compute them, reproduction."""
