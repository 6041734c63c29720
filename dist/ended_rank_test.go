package dist

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/launchenv"
)

// Only a rank of the same job that has ended keeps the others from joining: a rank may start ranks of
// another job, which inherit its variables.
func TestEndedRank(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(launchenv.ResultVariable, filepath.Join(dir, "result-0"))
	l := &launchenv.Job{Key: "job", Size: 2}
	require.Nil(t, endedRank(l))
	for ended, isLost := range map[launchenv.Ended]bool{
		{Job: "job", Rank: 1, PID: 7, Host: "n1"}: true, {Job: "outer", Rank: 1}: false, {Job: "job", Rank: 2}: false, {Job: "job", Rank: -1}: false,
	} {
		require.NoError(t, ended.Send(dir))
		if isLost {
			require.Equal(t, &PeerLostError{Rank: 1, PID: 7, Host: "n1"}, endedRank(l))
		} else {
			require.Nil(t, endedRank(l), "%v", ended)
		}
	}
	require.Nil(t, endedRank(nil))
}
