package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/dist"
)

// The program uses the transport that GOCCL_TRANSPORT names, its own as well as the built-in one.
func TestRun(t *testing.T) {
	for name, want := range map[string]string{"": "local", "arena": "arena", "local": "local"} {
		t.Setenv("GOCCL_TRANSPORT", name)
		var out bytes.Buffer
		require.NoError(t, run(&out))
		require.Equal(t, "10, over "+want+"\n", out.String())
	}
	t.Setenv("GOCCL_TRANSPORT", "areena")
	err := run(new(bytes.Buffer))
	var invalid *dist.InvalidBackendError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, []string{"auto", "tcp", "shm", "local", "arena"}, invalid.Available)
	require.ErrorContains(t, err, `environment: GOCCL_TRANSPORT: unknown transport "areena" (did you mean arena?); use one of auto, tcp, shm, local, arena`)
}
