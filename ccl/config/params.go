package config

import (
	"math"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/params"
	"github.com/goccl/goccl/internal/strictyaml"
)

// fill stores the values of the mapping n in fields and returns the line of each.
func fill(n strictyaml.Node, fields []params.Parameter) (lines map[string]int, err error) {
	lines = make(map[string]int)
	known := make(strictyaml.Fields)
	for _, p := range fields {
		known[p.Key] = func(n strictyaml.Node) error {
			lines[p.Key] = n.Line
			return store(n, p.Field)
		}
	}
	return lines, n.Read(known, nil, nil)
}

// store reads n into the field of a Parameter.
func store(n strictyaml.Node, field any) (err error) {
	switch p := field.(type) {
	case *bool:
		*p, err = n.Bool()
	case *int:
		*p, err = n.Whole(math.MinInt, math.MaxInt)
	case *string:
		*p, err = n.Text()
	case *time.Duration:
		*p, err = n.Duration()
	case *ccl.ByteSize:
		*p, err = strictyaml.Scalar(n, parseByteSize)
	}

	return err
}
