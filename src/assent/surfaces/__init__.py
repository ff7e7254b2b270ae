"""How people and programs reach Assent: HTTP, REST, web pages, command line."""
