//go:build interleave && race

package interleave

import "runtime"

// hideFromRaceDetector hides that tasks run one after the other. What the running task does until
// showToRaceDetector orders nothing.
func hideFromRaceDetector() { runtime.RaceDisable() }

func showToRaceDetector() { runtime.RaceEnable() }
