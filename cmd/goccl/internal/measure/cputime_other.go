//go:build !unix

package measure

import "time"

// cpuTime is 0: the system has no getrusage.
func cpuTime() time.Duration { return 0 }
