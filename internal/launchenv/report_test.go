package launchenv

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ReadReport reads what Send wrote last.
func TestReports(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r")
	getenv := func(name string) string {
		if name == ReportVariable {
			return file
		}
		return ""
	}
	none, err := ReadReport(file)
	require.NoError(t, err)
	require.Nil(t, none)
	r := &Report{
		Version: 1, Rank: 2, PID: 3, Time: time.Now().Round(0), Kind: FailedPanic, Message: "panic: \x00 \xff",
		Frames: []Frame{{"main.f", "/a/f.go", 7}}, Because: BecauseAborted, Ranks: []int{1},
	}
	require.NoError(t, (&Report{Message: "another"}).Send(getenv))
	require.NoError(t, r.Send(getenv))
	got, err := ReadReport(file)
	require.NoError(t, err)
	require.True(t, r.Time.Equal(got.Time))
	got.Time = r.Time
	r.Message = "panic: \x00 \ufffd"
	require.Equal(t, r, got)
	require.Equal(t, "main.f at f.go:7", got.Frames[0].String())

	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	_, err = ReadReport(file)
	require.ErrorContains(t, err, file)
	require.NoError(t, TakeBack(getenv))
	require.NoError(t, TakeBack(getenv), "twice")
	none, err = ReadReport(file)
	require.NoError(t, err)
	require.Nil(t, none)

	nothing := func(string) string { return "" }
	require.NoError(t, r.Send(nothing))
	require.NoError(t, TakeBack(nothing))
	require.Error(t, r.Send(func(string) string { return filepath.Join(file, "no", "such", "directory") }))
}

// The frames of a stack are the program's own.
func TestOwnFrames(t *testing.T) {
	stack := "goroutine 7 [running]:\nruntime/debug.Stack()\n\t/go/src/runtime/debug/stack.go:26 +0x5e\n" +
		"github.com/goccl/goccl/dist.(*rank).run.func1()\n\t/goccl/dist/spawn.go:153 +0x9c\n" +
		"panic({0x5a1, 0xc00})\n\t/go/src/runtime/panic.go:783 +0x132\n" +
		"runtime.goPanicIndex(0x3, 0x3)\n\t/go/src/runtime/panic.go:115 +0x74\n" +
		"main.(*model).step(...)\n\t/home/ada/C:/train.go:41\n" +
		"github.com/goccl/goccl/ccl.(*Call).body(0xc0)\n\t/goccl/ccl/engine.go:300 +0x10\n" +
		"github.com/goccl/goccl/examples/ddp.main.func1({0x1, 0x2}, 0x3)\n\t/goccl/examples/ddp/main.go:9 +0x10\n" +
		"github.com/goccl/goccl/dist.(*rank).run(0xc0, {0x1})\n\t/goccl/dist/spawn.go:160 +0x10\n" +
		"sync.(*WaitGroup).Go.func1()\n\t/go/src/sync/waitgroup.go:239 +0x4a\n" +
		"created by sync.(*WaitGroup).Go in goroutine 1\n\t/go/src/sync/waitgroup.go:237 +0x73\n"
	require.Equal(t, []Frame{
		{"main.(*model).step", "/home/ada/C:/train.go", 41},
		{"github.com/goccl/goccl/examples/ddp.main.func1", "/goccl/examples/ddp/main.go", 9},
	}, OwnFrames([]byte(stack)))
	require.Empty(t, OwnFrames(nil))
	require.Empty(t, OwnFrames([]byte("\npanic(")))
}
