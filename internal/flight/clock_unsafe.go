package flight

import _ "unsafe" // for go:linkname

// nanotime returns the monotonic clock in nanoseconds. On Linux it is CLOCK_MONOTONIC, which all
// processes of a machine share; time.Now reads a second clock as well. The runtime keeps its name
// and signature for linkname users.
//
//go:linkname nanotime runtime.nanotime
func nanotime() int64
