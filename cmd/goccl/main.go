package main

import (
	// The algorithms that a configuration can name.
	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/cmd/goccl/tool"
)

func main() { tool.Main() }
