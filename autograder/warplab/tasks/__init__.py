"""One module per problem set; importing it registers its tasks (registry.get does so on demand)."""
