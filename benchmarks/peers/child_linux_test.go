package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pipeOfFake is the variable with the pipe that a fake holds open as long as it lives.
const pipeOfFake = "TEST_PEERS_FAKE_PIPE"

func init() {
	// A launcher that ignores the request to end.
	fakes["stubborn"] = func() {
		signal.Ignore(syscall.SIGTERM)
		startRank()
		time.Sleep(time.Hour)
	}
	// A launcher that leaves its rank behind.
	fakes["careless"] = startRank
	fakes["rank"] = func() {
		signal.Ignore(syscall.SIGTERM)
		holdPipe()
		fmt.Println("up")
		time.Sleep(time.Hour)
	}
	// A launcher that removes its file on a request to end.
	fakes["tidy"] = func() {
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		file := os.Getenv(pipeOfFake) + ".file"
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			panic(err)
		}

		holdPipe()
		<-asked
		if err := os.Remove(file); err != nil {
			panic(err)
		}
	}
}

// startRank starts a rank in a session of its own, as some launchers of MPI do, and
// waits until it is up.
func startRank() {
	rank := exec.Command(os.Args[0])
	rank.Env = append(os.Environ(), fakePeer+"=rank")
	rank.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	up, err := rank.StdoutPipe()
	if err == nil {
		err = rank.Start()
	}

	if err == nil {
		_, err = up.Read(make([]byte, 1))
	}
	if err != nil {
		panic(err)
	}
}

func holdPipe() {
	pipe, err := os.OpenFile(os.Getenv(pipeOfFake), os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	if _, err := pipe.WriteString("I"); err != nil {
		panic(err)
	}
}

// play starts a fake, waits until it holds the pipe, cancels, and waits until no process
// holds the pipe.
func play(t *testing.T, name string, grace time.Duration) (pipe string, err error) {
	t.Helper()
	pipe = filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error)
	go func() {
		c := child{args: []string{os.Args[0]}, env: []string{fakePeer + "=" + name, pipeOfFake + "=" + pipe}}
		_, err := c.output(ctx, time.Minute, grace)
		ended <- err
	}()
	f, err := os.Open(pipe) // waits until the fake opens it
	require.NoError(t, err)
	defer f.Close()
	_, err = f.Read(make([]byte, 1))
	require.NoError(t, err)
	cancel(errors.New("interrupted"))
	err = <-ended
	require.NoError(t, f.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, left := io.ReadAll(f)
	require.NoError(t, left, "a process outlived the child")
	return pipe, err
}

// All descendants of a child die with it, in any session.
func TestKilledWithAllItStarted(t *testing.T) {
	_, err := play(t, "stubborn", 10*time.Millisecond)
	require.EqualError(t, err, "interrupted")
}

func TestNothingIsLeftBehind(t *testing.T) {
	_, err := play(t, "careless", time.Minute)
	if err != nil { // the test cancelled before the launcher had ended
		require.EqualError(t, err, "interrupted")
	}
}

// A launcher can clean up before it is killed.
func TestAskedToEnd(t *testing.T) {
	pipe, err := play(t, "tidy", time.Minute)
	require.EqualError(t, err, "interrupted")
	require.NoFileExists(t, pipe+".file")
}
