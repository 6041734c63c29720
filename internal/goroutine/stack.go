package goroutine

import (
	"bytes"
	"fmt"
	"runtime"
)

// ID returns the number of the calling goroutine, for Stack.
func ID() int64 {
	checkOnce.Do(check)
	return id()
}

// Stack returns the stack of the goroutine with that number in the format of debug.Stack,
// nil if it has ended. It stops all goroutines for a moment.
func Stack(id int64) []byte {
	all := make([]byte, 1<<18)
	for {
		n := runtime.Stack(all, true)
		if n < len(all) {
			all = all[:n]
			break
		}
		all = make([]byte, 2*len(all))
	}

	start := fmt.Appendf(nil, "goroutine %d ", id)
	for stack := range bytes.SplitSeq(all, []byte("\n\n")) {
		if bytes.HasPrefix(stack, start) {
			return bytes.Clone(stack)
		}
	}
	return nil
}
