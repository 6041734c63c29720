//go:build interleave && race

package interleave

import (
	"runtime"
	"unsafe"
)

const detectsRaces = true

// hideFromRaceDetector hides that tasks run one after the other. What the running task does until
// showToRaceDetector orders nothing.
func hideFromRaceDetector() { runtime.RaceDisable() }

func showToRaceDetector() { runtime.RaceEnable() }

var races int

// hasNewRace reports whether the race detector has reported a race since the last call.
//
//go:norace
func hasNewRace() bool {
	before := races
	races = runtime.RaceErrors()
	return races > before
}

// release orders what the running task has done before what another one does after its acquire.
func release[T any](p *T) { runtime.RaceReleaseMerge(unsafe.Pointer(p)) }

func acquire[T any](p *T) { runtime.RaceAcquire(unsafe.Pointer(p)) }
