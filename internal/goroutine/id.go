package goroutine

import (
	"bytes"
	"runtime"
	"strconv"
	"sync"

	"github.com/petermattis/goid"
)

var (
	checkOnce sync.Once
	// fromStack is set if goid does not support this version of the runtime. It is
	// written once, before the first table of the process is published, and read
	// only after a table was found or published.
	fromStack bool
)

func check() { fromStack = goid.Get() != stackID() }

// id returns the calling goroutine's id, which is positive.
func id() int64 {
	if fromStack {
		return stackID()
	}
	return goid.Get()
}

// stackID parses the start of a stack trace, "goroutine 17 [running]:".
func stackID() int64 {
	var buf [64]byte
	text := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	digits, _, _ := bytes.Cut(text, []byte(" "))
	id, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		panic("goroutine: runtime.Stack does not begin with the goroutine's id") // an unknown runtime; no input leads here
	}
	return id
}
