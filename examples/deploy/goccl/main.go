// Command goccl is the tool without transport mpi: with CGO_ENABLED=0 it is static, and runs in an
// image that has no glibc.
//
// # Model
//
// See package cmd/goccl/tool.
package main

import (
	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/cmd/goccl/tool"
)

func main() { tool.Main() }
