package config

import (
	"strconv"
	"strings"
)

// Error is a mistake in a configuration, with its place. Line is 0 where
// there is no line to name.
type Error struct {
	File    string
	Line    int
	Key     string // path of the key, such as "algorithms.ring.params.chunk"
	Message string
	Err     error // the cause, such as fs.ErrNotExist, or nil
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(e.Line))
	}
	b.WriteString(": ")
	if e.Key != "" {
		b.WriteString(e.Key)
		b.WriteString(": ")
	}
	b.WriteString(e.Message)
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
