package launchenv

import (
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/library"
)

// The frames of a panic are the program's own, also those of its packages and dependencies, and of
// the examples and commands of goccl.
func TestPanicFrames(t *testing.T) {
	stack := "goroutine 7 [running]:\nruntime/debug.Stack()\n\t/go/src/runtime/debug/stack.go:26 +0x5e\n" +
		"github.com/goccl/goccl/dist.(*rank).run.func1()\n\t/goccl/dist/spawn.go:153 +0x9c\n" +
		"panic({0x5a1, 0xc00})\n\t/go/src/runtime/panic.go:783 +0x132\n" +
		"runtime.goPanicIndex(0x3, 0x3)\n\t/go/src/runtime/panic.go:115 +0x74\n" +
		"main.(*model).step(...)\n\t/home/ada/C:/train.go:41\n" +
		"slices.SortFunc[...](0xc0, 0xc1)\n\tslices/sort.go:29 +0x10\n" +
		"github.com/goccl/goccl/ccl.(*Call).body(0xc0)\n\t/goccl/ccl/engine.go:300 +0x10\n" +
		"train/data.Load[...]({0x1, 0x2})\n\ttrain/data/load.go:3 +0x10\n" +
		"gopkg.in/yaml%2ev3.Unmarshal({0x1, 0x2})\n\t/home/ada/go/pkg/mod/gopkg.in/yaml.v3@v3.0.1/yaml.go:9 +0x10\n" +
		"github.com/goccl/goccl/half.F(0x1)\n\t/goccl/half/half.go:9 +0x10\n" +
		"github.com/goccl/goccl/examples/ddp.main.func1({0x1, 0x2}, 0x3)\n\t/goccl/examples/ddp/main.go:9 +0x10\n" +
		"github.com/goccl/goccl/dist.(*rank).run(0xc0, {0x1})\n\t/goccl/dist/spawn.go:160 +0x10\n" +
		"sync.(*WaitGroup).Go.func1()\n\t/go/src/sync/waitgroup.go:239 +0x4a\n" +
		"created by sync.(*WaitGroup).Go in goroutine 1\n\t/go/src/sync/waitgroup.go:237 +0x73\n"
	require.Equal(t, []Frame{
		{"main.(*model).step", "/home/ada/C:/train.go", 41},
		{"train/data.Load[...]", "train/data/load.go", 3},
		{"gopkg.in/yaml%2ev3.Unmarshal", "/home/ada/go/pkg/mod/gopkg.in/yaml.v3@v3.0.1/yaml.go", 9},
		{"github.com/goccl/goccl/examples/ddp.main.func1", "/goccl/examples/ddp/main.go", 9},
	}, PanicFrames([]byte(stack)))
	require.Equal(t, "main.(*model).step at train.go:41", PanicFrames([]byte(stack))[0].String())
	require.Equal(t, "data.Load[...] at load.go:3", PanicFrames([]byte(stack))[1].String())
	require.Empty(t, PanicFrames(nil))
	require.Empty(t, PanicFrames([]byte("\npanic(")))

	// If nothing is the program's own, the frames are those that there are.
	require.Equal(t, []Frame{
		{"github.com/goccl/goccl/ccl.f", "/goccl/ccl/f.go", 1}, {"sort.Slice", "/go/src/sort/slice.go", 2},
	}, PanicFrames([]byte("goroutine 7 [running]:\npanic(0x1)\n\t/go/src/runtime/panic.go:783 +0x132\n"+
		"github.com/goccl/goccl/ccl.f()\n\t/goccl/ccl/f.go:1 +0x1\nsort.Slice()\n\t/go/src/sort/slice.go:2 +0x1\n")))
}

// The goroutines of a text that the Go runtime writes when SIGQUIT or a panic ends a program.
func TestParseStacks(t *testing.T) {
	text := "epoch 3\nSIGQUIT: quit\nPC=0x47b0e1 m=0 sigcode=0\n\n" +
		"goroutine 0 gp=0x5c m=0 mp=0x5d [idle]:\nruntime.futex(0x5a, 0x80)\n\t/go/src/runtime/sys_linux_amd64.s:557 +0x21 fp=0x7ff sp=0x7fe pc=0x47b\n\n" +
		"goroutine 1 [sync.WaitGroup.Wait, 2 minutes, locked to thread]:\nmain.main()\n\t/a b/x.go:9 +0x5d\n\n" +
		"goroutine 34 [chan receive]:\nmain.f({0x1, 0x2})\n\t/a b/x.go:12 +0x1d\n...additional frames elided...\n" +
		"created by main.main in goroutine 1\n\t/a b/x.go:30 +0x2d\n\n" +
		"goroutine 35 [select]:\nmain.f.func1()\n\t/a b/x.go:14 +0x1d\n" +
		"created by github.com/goccl/goccl/internal/interleave.Go in goroutine 34\n\t/goccl/internal/interleave/waits.go:25 +0x2d\n\n" +
		"rax    0xca\n(not a frame)\n\tat all\nmain.f()\n\t/a b/x.go:14\n"
	require.Equal(t, []Goroutine{
		{0, "idle", []Frame{{"runtime.futex", "/go/src/runtime/sys_linux_amd64.s", 557}}, nil},
		{1, "sync.WaitGroup.Wait, 2 minutes, locked to thread", []Frame{{"main.main", "/a b/x.go", 9}}, nil},
		{34, "chan receive", []Frame{{"main.f", "/a b/x.go", 12}}, &Frame{"main.main", "/a b/x.go", 30}},
		{35, "select", []Frame{{"main.f.func1", "/a b/x.go", 14}}, nil}, // interleave.Go has started it for main.f
	}, ParseStacks(text))

	own := ParseStacks(string(debug.Stack()))
	require.Len(t, own, 1)
	require.Equal(t, "running", own[0].State)
	require.Equal(t, library.Prefix+"internal/launchenv.TestParseStacks", own[0].Frames[1].Function)
	require.Equal(t, "testing.(*T).Run", own[0].Creator.Function)
	require.False(t, own[0].IsWorker())
	require.NotEmpty(t, own[0].Frames)
}

// No name of the standard library is missing, and none is there that is not its own.
func TestStandardLibrary(t *testing.T) {
	list, err := exec.Command("go", "list", "std").Output()
	require.NoError(t, err)
	var first []string
	for line := range strings.Lines(string(list)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "/")
		first = append(first, name)
	}
	slices.Sort(first)
	require.Equal(t, slices.Compact(first), standardLibrary)
}
