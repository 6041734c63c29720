package cores

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asHolder makes the test binary a job that holds its cores under the prefix that the variable
// has, until it is killed.
const asHolder = "TEST_GOCCL_HOLDER"

func TestMain(m *testing.M) {
	if prefix := os.Getenv(asHolder); prefix != "" {
		LockPrefix = prefix
		if _, err := Reserve(1, true); err != nil {
			panic(err)
		}
		fmt.Println("held")
		time.Sleep(time.Hour)
	}
	if name := os.Getenv(asClaimer); name != "" {
		playClaimer(name)
	}
	LockPrefix = fmt.Sprintf("goccl-test-%d", os.Getpid()) // jobs of this machine do not disturb tests
	os.Exit(m.Run())
}

// A job's cores are its own until it releases them.
func TestReserve(t *testing.T) {
	usable, err := Usable()
	require.NoError(t, err)
	first, err := Reserve(1, true)
	require.NoError(t, err)
	require.Equal(t, [][]int{usable}, first.Shares)

	m, err := Survey()
	require.NoError(t, err)
	require.Empty(t, m.Free)
	require.Equal(t, usable, CPUs(m.Held))
	_, err = Reserve(1, true)
	require.ErrorContains(t, err, fmt.Sprintf("and other jobs of goccl run hold %d of them", len(m.Held)))

	first.Release()
	m, err = Survey()
	require.NoError(t, err)
	require.Empty(t, m.Held, "a survey holds nothing, nor does a job that was refused")
	second, err := Reserve(1, true)
	require.NoError(t, err)
	second.Release()
}

// A job of other cores gets those that are left.
func TestReserveTheRest(t *testing.T) {
	m, err := Survey()
	require.NoError(t, err)
	if len(m.Free) < 2 {
		t.Skip("there is one core")
	}
	l, held := m.Free[0].take()
	require.False(t, held)
	defer release(l)
	r, err := Reserve(1, true)
	require.NoError(t, err)
	defer r.Release()
	require.Equal(t, [][]int{CPUs(m.Free[1:])}, r.Shares)
}

// The lock of a job that is killed ends with it.
func TestKilledHolder(t *testing.T) {
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), asHolder+"="+LockPrefix)
	out, err := holder.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, holder.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held\n", line)
	_, err = Reserve(1, true)
	require.ErrorContains(t, err, "other jobs of goccl run hold")

	require.NoError(t, holder.Process.Kill())
	require.Error(t, holder.Wait())
	r, err := Reserve(1, true)
	require.NoError(t, err)
	r.Release()
}

// Of jobs that start at the same moment one gets all cores, and the others none.
func TestReserveAtOnce(t *testing.T) {
	usable, err := Usable()
	require.NoError(t, err)
	for range 50 {
		all := make([]*Reservation, 8)
		var jobs sync.WaitGroup
		for i := range all {
			jobs.Go(func() { all[i], _ = Reserve(1, true) })
		}
		jobs.Wait()
		winners := 0
		for _, r := range all {
			if r != nil {
				winners++
				require.Equal(t, [][]int{usable}, r.Shares)
				r.Release()
			}
		}
		require.Equal(t, 1, winners)
	}
}
