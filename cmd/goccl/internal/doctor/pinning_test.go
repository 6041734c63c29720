package doctor

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/cgroup"
	"github.com/goccl/goccl/internal/cores"
)

func TestPinning(t *testing.T) {
	two := []cores.Core{{ID: 0, CPUs: []int{0}}, {ID: 1, CPUs: []int{1}}}
	more := []cores.Core{{ID: 2, CPUs: []int{2}}, {ID: 3, CPUs: []int{3}}}
	threads := []cores.Core{{ID: 0, CPUs: []int{0, 4}}, {ID: 1, CPUs: []int{1, 5}}}
	for _, c := range []struct {
		m       cores.Machine
		verdict Verdict
		says    string
	}{
		{cores.Machine{Free: two}, OK, "goccl run pins up to 2 ranks; free cores: 0-1"},
		{cores.Machine{Free: threads}, OK, "goccl run pins up to 2 ranks; free cores: 2 with hyperthreads 0-1,4-5"},
		{cores.Machine{Free: two[:1]}, OK, "goccl run pins no ranks; free cores: 0"},
		{cores.Machine{Free: more, Held: two}, Note, "goccl run pins up to 2 ranks; free cores: 2-3; other jobs hold 0-1"},
		{cores.Machine{Held: two}, Note, "goccl run pins no ranks; free cores: none; other jobs hold 0-1"},
		{cores.Machine{Free: two, Quota: cgroup.Limit{Value: 1.5, File: "cpu.max"}}, OK, "goccl run pins no ranks; free cores: 0-1; quota of 1.5 cores"},
		{cores.Machine{Free: two, Uneven: true}, Note, "goccl run pins no ranks; free cores: 0-1; some of them are faster than others"},
	} {
		f := Pinning(c.m, nil)
		require.Equal(t, "pinning", f.Name)
		require.Equal(t, c.verdict, f.Verdict, f.Says)
		require.Equal(t, c.says, f.Says)
		require.Equal(t, c.verdict == Note, f.Do != "")
	}
	f := Pinning(cores.Machine{}, errors.New("no such call"))
	require.Equal(t, Note, f.Verdict)
	require.Equal(t, "no such call", f.Says)
}
