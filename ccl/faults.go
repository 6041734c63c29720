package ccl

import (
	"runtime/debug"

	"github.com/goccl/goccl/transport"
)

// faults turns faults in memory that ranks share into errors: the memory can vanish, and another
// program can overwrite it.
type faults struct {
	guard    transport.FaultGuard // nil: shared memory cannot vanish
	wasOn    bool                 // whether faults were panics before the call
	recorder *records             // its memory can vanish as well
}

// panicOnFaults turns faults in memory that ranks share into panics, which do not kill the
// process, until restoreFaults.
func (f *faults) panicOnFaults() {
	if f.guard != nil {
		f.wasOn = debug.SetPanicOnFault(true)
	}
}

func (f *faults) restoreFaults() {
	if f.guard != nil {
		debug.SetPanicOnFault(f.wasOn)
	}
}

// fault returns the error for v, a recovered value, if its cause is memory that ranks share: the
// memory has vanished, or holds what no rank writes there. It is nil for other panics, such as a
// kernel's.
func (f *faults) fault(v any) error {
	if e, ok := v.(*transport.ProtocolError); ok {
		return e
	}
	if f.guard == nil || v == nil {
		return nil
	}
	if err := f.guard.Vanished(v); err != nil || f.recorder.recorder == nil {
		return err
	}
	return f.recorder.recorder.memory.Vanished(v)
}

// caught runs f and returns an error if f panics because of shared memory.
func (f *faults) caught(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			if err = f.fault(v); err == nil {
				panic(v)
			}
		}
	}()
	return do()
}
