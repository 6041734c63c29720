package ddp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

func init() {
	works["save without one rank"] = saveWithoutOneRank
	works["write and read for long"] = writeAndReadForLong
	works["kill in Save"] = endInSave
}

// shortTimeout is the timeout of the groups of ranks that wait.
const shortTimeout = time.Second

// reinitialize makes the default group anew, with a short timeout, and a Reducer in it.
func reinitialize(opts ...dist.InitOption) (*ddp.Reducer, error) {
	if err := dist.DestroyProcessGroup(); err != nil {
		return nil, err
	}
	if err := dist.InitProcessGroup("ccl", append(opts, dist.WithTimeout(shortTimeout))...); err != nil {
		return nil, err
	}
	return ddp.New(bg, world(), small(), ddp.Options{})
}

// operations are Save and Load of the same file.
func operations(r *ddp.Reducer, path string, state any) map[string]func() error {
	return map[string]func() error{
		"Save": func() error { return r.Save(bg, path, state) },
		"Load": func() error { return r.Load(bg, path, state) },
	}
}

// A rank that never calls Save, or Load, is a timeout of the others, which names it.
func TestSaveWithoutOneRank(t *testing.T) {
	for kind, do := range kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Setenv("TEST_DDP_DIR", t.TempDir())
			succeeded(t, do(t, "save without one rank", 3))
		})
	}
}

func saveWithoutOneRank(rank, ranks int, _ *outcome) error {
	last := ranks - 1
	for _, operation := range []string{"Save", "Load"} {
		r, err := reinitialize()
		if err != nil {
			return err
		}
		if rank != last {
			err := operations(r, os.Getenv("TEST_DDP_DIR")+"/c", nil)[operation]()
			var late *dist.TimeoutError
			if !errors.As(err, &late) || !slices.Contains(late.Missing, last) {
				return fmt.Errorf("%s without rank %d: %w", operation, last, err)
			}
		}
		if err := dist.Barrier(dist.WithCallTimeout(-1)); err != nil {
			return err
		}
	}
	return nil
}

// slowState is a state whose rank waits for a message of another one before it is encoded or
// decoded.
type slowState struct {
	group *dist.ProcessGroup
	from  int
}

func (s slowState) wait() error {
	_, err := dist.Recv([]int{0}, s.from, 0, dist.WithGroup(s.group), dist.WithCallTimeout(-1))
	return err
}

func (s slowState) MarshalJSON() ([]byte, error)     { return []byte("1"), s.wait() }
func (s *slowState) UnmarshalJSON(text []byte) error { return waiting.wait() }

// waiting is the state that the rank which reads for long decodes: Load makes a new one of the
// type.
var waiting slowState

// warnings gets the warnings of a rank.
type warnings chan string

func (w warnings) Enabled(_ context.Context, level slog.Level) bool { return level == slog.LevelWarn }
func (w warnings) WithAttrs([]slog.Attr) slog.Handler               { return w }
func (w warnings) WithGroup(string) slog.Handler                    { return w }
func (w warnings) Handle(_ context.Context, record slog.Record) error {
	text := record.Message
	record.Attrs(func(a slog.Attr) bool { text += fmt.Sprint(" ", a); return true })
	w <- text
	return nil
}

// Ranks wait for one that writes or reads for longer than the timeout, with a warning that names it
// each time that as long has passed: it goes on when another rank is warned for the second time.
func TestWriteAndReadForLong(t *testing.T) {
	for kind, do := range kinds() {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("TEST_DDP_DIR", dir)
			all := do(t, "write and read for long", 3)
			succeeded(t, all)
			require.Equal(t, []float64{1, 1}, all[2].Values, "loaded values")
		})
	}
}

func writeAndReadForLong(rank, _ int, o *outcome) error {
	warned := make(warnings, 100)
	r, err := reinitialize(dist.WithLogger(slog.New(warned)))
	if err != nil {
		return err
	}
	const slow, warner = 0, 1
	path := os.Getenv("TEST_DDP_DIR") + "/c"
	group := world()
	for _, operation := range []string{"Save", "Load"} {
		sent := make(chan error, 1)
		go func() {
			if rank != warner {
				sent <- nil
				return
			}
			for count := 0; count < 2; {
				text := <-warned // of other calls as well, if ranks are slow
				if !strings.Contains(text, "ddp."+operation+": rank") {
					continue
				}
				count++
				if !containsAll(text, "missing=[0]", "a collective has waited for half of its timeout") {
					sent <- fmt.Errorf("the warning is %q", text)
					return
				}
			}
			sent <- dist.Send([]int{0}, slow, 0, dist.WithGroup(group))
		}()
		state := any(new(json.RawMessage))
		if rank == slow {
			waiting = slowState{group, warner}
			state = &waiting
		} else if operation == "Save" {
			state = 1
		}
		if err := operations(r, path, state)[operation](); err != nil {
			return err
		}
		o.Values = append(o.Values, 1)
		if err := <-sent; err != nil {
			return err
		}
	}
	return r.Close()
}

// A process that is killed while it writes ends the wait of the others, who name it.
func TestKilledInSave(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ranks are processes on Linux only")
	}
	t.Setenv("TEST_DDP_DIR", t.TempDir())
	all := onProcesses(t, "kill in Save", 3)
	for rank, o := range all[1:] {
		require.NotNil(t, o.Lost, "rank %d: %s", rank+1, o.Err)
		require.Zero(t, *o.Lost)
	}
}

func endInSave(rank, ranks int, _ *outcome) error {
	r, err := ddp.New(bg, world(), small(), ddp.Options{})
	if err != nil {
		return err
	}
	return r.Save(bg, os.Getenv("TEST_DDP_DIR")+"/c", fatalState{})
}

// fatalState is a state that kills the process which encodes it.
type fatalState struct{}

func (fatalState) MarshalJSON() ([]byte, error) {
	p, err := os.FindProcess(os.Getpid())
	if err != nil {
		return nil, err
	}
	if err := p.Kill(); err != nil {
		return nil, err
	}
	select {} // until the signal comes
}
