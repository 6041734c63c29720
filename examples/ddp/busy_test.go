package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// writeCoreTime writes what the kernel shows of a machine with as many cores as this process may use.
func writeCoreTime(t *testing.T, all, idle, here int) coreTime {
	t.Helper()
	stat := fmt.Sprintf("cpu  %d 0 0 %d 0 0 0 0 0 0\n", all-idle, idle)
	for i := range runtime.GOMAXPROCS(0) {
		stat += fmt.Sprintf("cpu%d 1 0 0 1 0 0 0 0 0 0\n", i)
	}
	self := "1 (a (strange) name) S 0 0 0 0 0 0 0 0 0 0 " + fmt.Sprint(here) + " 0 0 0\n"
	require.NoError(t, os.MkdirAll(filepath.Join(proc, "self"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(proc, "stat"), []byte(stat), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(proc, "self", "stat"), []byte(self), 0o600))
	return readCoreTime()
}

// Others have the cores that are neither idle nor this process's.
func TestOthers(t *testing.T) {
	hideOthers(t)
	require.Zero(t, readCoreTime().othersSince(coreTime{}), "nothing is known")

	cores := runtime.GOMAXPROCS(0)
	before := writeCoreTime(t, 1000, 500, 100)
	after := writeCoreTime(t, 1000+100*cores, 500+20, 100+30) // 100 ticks of each core
	require.InDelta(t, float64(100*cores-50)/100, after.othersSince(before), 1e-9)
	require.Zero(t, writeCoreTime(t, 2000+100*cores, 1000, 600+100*cores).othersSince(coreTime{cores, 2000, 1000, 600}), "this process had all")
}

// Times on a busy machine are no speed-up, and the report says why.
func TestBusyMachine(t *testing.T) {
	runs := []*run{{ranks: 1, total: epoch{elapsed: 2 * time.Second}}, {ranks: 2, total: epoch{elapsed: time.Second}}}
	for i := range runs {
		runs[i].epochs = []epoch{{losses: []float64{2, 1}, elapsed: time.Second}}
	}
	var idle, busy strings.Builder
	require.NoError(t, report{out: &idle}.comparison(runs, 0.1))
	require.NoError(t, report{out: &busy}.comparison(runs, 1.24))
	require.Regexp(t, `\n +2 +1.00 s +2.00x `, idle.String())
	require.NotContains(t, idle.String(), "busy")
	require.Regexp(t, `\n +2 +1.00 s +- `, busy.String())
	require.Contains(t, busy.String(), "This machine was busy: other programs used 1.2 of its ")
}
