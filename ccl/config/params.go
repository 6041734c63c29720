package config

import (
	"math"
	"time"

	"github.com/goccl/goccl/ccl"
)

// fill stores the values of mapping n in params and returns the line of each.
func (n node) fill(params []ccl.Parameter) (lines map[string]int, err error) {
	lines = make(map[string]int)
	known := make(fields)
	for _, p := range params {
		known[p.Key] = func(n node) error {
			lines[p.Key] = n.line
			return n.store(p.Field)
		}
	}
	return lines, n.read(known)
}

// store reads n into the field of a ccl.Parameter.
func (n node) store(field any) (err error) {
	switch p := field.(type) {
	case *bool:
		*p, err = n.boolean()
	case *int:
		*p, err = n.whole(math.MinInt, math.MaxInt)
	case *string:
		*p, err = n.text()
	case *time.Duration:
		*p, err = n.duration()
	case *ccl.ByteSize:
		*p, err = scalar(n, parseByteSize)
	}
	return err
}
