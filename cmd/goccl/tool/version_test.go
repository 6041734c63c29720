package tool

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersion(t *testing.T) {
	require.Regexp(t, `^goccl [^,]+(, revision [0-9a-f]+\+?)?, `+runtime.Version()+`, `+runtime.GOOS+"/"+runtime.GOARCH+"\n$", printed(t, "--version"))

	ours := debug.Module{Path: modulePath, Version: "v1.2.3"}
	other := debug.Module{Path: "example.com/mine", Version: "v7.0.0"}
	replaced := debug.Module{Path: modulePath, Version: "v0.0.0", Replace: &debug.Module{Path: "../goccl"}}
	require.Equal(t, "v1.2.3", moduleVersion(&debug.BuildInfo{Main: ours}))
	require.Equal(t, "v1.2.3", moduleVersion(&debug.BuildInfo{Main: other, Deps: []*debug.Module{&ours}}))
	require.Equal(t, "(devel)", moduleVersion(&debug.BuildInfo{Main: other, Deps: []*debug.Module{&replaced}}))
	require.Equal(t, "(devel)", moduleVersion(&debug.BuildInfo{}))
}

// `goccl help` shows what --help shows.
func TestHelp(t *testing.T) {
	require.Equal(t, printed(t, "--help"), printed(t, "help"))
	require.Equal(t, printed(t, "--help"), printed(t))
	require.Equal(t, printed(t, "--version"), printed(t, "version"))
	require.Contains(t, failed(t, 2, "help", "nosuch"), "unexpected argument nosuch; commands: bench, config, doctor, ")
	require.Equal(t, printed(t, "bench", "--help"), printed(t, "help", "bench"))
	require.Contains(t, failed(t, 2, "help", "benhc"), "unexpected argument benhc")
}
