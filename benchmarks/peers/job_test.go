package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The output of a job is the output of its first command.
func TestFirstCommandPrints(t *testing.T) {
	text, err := job{fakeChild("talk"), fakeChild("silent"), fakeChild("silent")}.output(t.Context(), time.Minute, grace)
	require.NoError(t, err)
	require.Equal(t, "hello\n", text)
	text, err = job{fakeChild("silent"), fakeChild("talk")}.output(t.Context(), time.Minute, grace)
	require.NoError(t, err)
	require.Empty(t, text)
}

// If any command of a job fails, the others are ended.
func TestCommandFails(t *testing.T) {
	hang, fail := fakeChild("hang"), fakeChild("fail")
	for rank, j := range []job{{fail, hang}, {hang, fail, hang}, {hang, hang, fail}} {
		_, err := j.output(t.Context(), time.Minute, time.Minute)
		require.EqualError(t, err, fmt.Sprintf("rank %d: exit status 3: no shared memory", rank))
	}
}

func TestJobThatHangs(t *testing.T) {
	_, err := job{fakeChild("hang"), fakeChild("hang")}.output(t.Context(), 50*time.Millisecond, time.Minute)
	require.Error(t, err)
	require.Regexp(t, "^rank [01]: killed: it had not ended after 50ms$", err.Error())
}

func TestJobAsTyped(t *testing.T) {
	c := child{args: []string{"a", "b"}, env: []string{"X=1"}}
	require.Equal(t, "env X=1 a b", job{c}.String())
	require.Equal(t, "env X=1 a b, and 2 more like it", job{c, c, c}.String())
}
