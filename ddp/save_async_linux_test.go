package ddp_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
)

// A full disk is an error that says so, the checkpoint before stays, and nothing else.
func TestSaveOnFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("a file system that is full needs the rights of root: ", err)
	}
	defer func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) }()
	path := filepath.Join(dir, "c")
	saved(t, path, small)
	all(t, 2, func(rank int) error {
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("w", make([]float64, 10_000), nil)}, ddp.Options{})
		if err != nil {
			return err
		}
		work, err := r.SaveAsync(bg, path, 1)
		if err != nil {
			return err
		}
		err = work.Wait(bg)
		failed, ok := errors.AsType[*ddp.CheckpointError](err)
		if !ok || rank == 0 && !errors.Is(err, syscall.ENOSPC) {
			return err
		}
		return errors.Join(equal("reason", failed.Reason, "rank 0: write "+path+": no space left on device"), r.Close())
	})
	_, err := ddp.ReadCheckpoint(path)
	require.NoError(t, err)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}
