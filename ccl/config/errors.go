package config

import "fmt"

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
	at := e.File
	if e.Line > 0 {
		at += fmt.Sprintf(":%d", e.Line)
	}
	if e.Key != "" {
		at += ": " + e.Key
	}
	return at + ": " + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
