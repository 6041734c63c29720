package ddp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/ccl"
)

// UnreadyError says that gradients were not ready when a step ended. Its text does not name the
// rank, which Spawn and the errors of other ranks put before it.
type UnreadyError struct {
	Rank       int
	Parameters []string // names
	Static     bool     // the option StaticGraph is set, and they were ready in the first step
}

// namesShown is how many names of parameters an error lists.
const namesShown = 8

func (e *UnreadyError) Error() string {
	why := "call Ready for each, or set FindUnused if a step may leave parameters out"
	if e.Static {
		why = "they were ready in the first step; set FindUnused in place of StaticGraph if steps differ"
	}
	return fmt.Sprintf("ddp: no gradient was ready for %s: %s", joinNames(e.Parameters), why)
}

// joinNames returns the names of parameters, or the first of them, in quotes where they are empty
// or have characters that a terminal may act on.
func joinNames(names []string) string {
	more := ""
	if n := len(names) - namesShown; n > 0 {
		names, more = names[:namesShown], fmt.Sprintf(" and %d more", n)
	}
	shown := slices.Clone(names)
	for i, name := range shown {
		if quoted := strconv.Quote(name); name == "" || len(quoted) > len(name)+2 {
			shown[i] = quoted
		}
	}
	return strings.Join(shown, ", ") + more
}

func (r *Reducer) bucketError(bucket int, err error) error {
	var names []string
	for _, i := range r.buckets[bucket].parameters {
		names = append(names, r.params[i].name)
	}
	return fmt.Errorf("ddp: bucket %d (%s): %w", bucket, joinNames(names), err)
}

// invalid returns the error of an argument.
func invalid(operation, format string, args ...any) error {
	return &ccl.InvalidArgumentError{Operation: operation, Message: fmt.Sprintf(format, args...)}
}
