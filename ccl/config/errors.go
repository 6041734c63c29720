package config

import (
	"strconv"
	"strings"
)

// Error is a mistake in a configuration file or an environment variable.
type Error struct {
	File    string // "environment" for a variable
	Line    int    // 0 if the mistake has no line
	Key     string // path of the key, such as "algorithms.ring.params.chunk"
	Message string
	Err     error // the cause, such as fs.ErrNotExist, or nil
}

// Error returns "file:line: key: message".
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
