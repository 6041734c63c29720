package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/internal/atomicfile"
)

// Fingerprint identifies the conditions of a Store's results.
type Fingerprint struct {
	Sweep         string `json:"sweep"`         // SHA-256 of the sweep file
	Configuration string `json:"configuration"` // SHA-256 of the settings of all jobs and world sizes
	Machine       string `json:"machine"`
	Program       string `json:"program"` // revision of the source, "" if unknown
}

// NewFingerprint returns the fingerprint of a file with its settings, of all jobs and world sizes,
// on this machine.
func NewFingerprint(f *File, settings []*config.Settings) Fingerprint {
	all := sha256.New()
	for _, s := range settings {
		all.Write([]byte(s.Agreement()))
	}
	text := sha256.Sum256([]byte(f.Text))
	machine := measure.ThisMachine()
	return Fingerprint{
		Sweep:         hex.EncodeToString(text[:]),
		Configuration: hex.EncodeToString(all.Sum(nil)),
		Machine:       machine.String(),
		Program:       machine.Revision,
	}
}

// differs describes the first difference of another fingerprint, "" if they are equal.
func (p Fingerprint) differs(other Fingerprint) string {
	switch {
	case p.Sweep != other.Sweep:
		return "another text of the sweep file"
	case p.Configuration != other.Configuration:
		return "another configuration"
	case p.Machine != other.Machine:
		return "another machine (" + other.Machine + ")"
	case p.Program != other.Program:
		return "another revision of the program"
	}
	return ""
}

// Store is a directory of results: sweep.json with the Fingerprint, and a file in
// cells for each finished case of a job.
type Store struct{ dir string }

// Open opens the store in a directory, which it creates if necessary. Finished cells of another
// Fingerprint are an error, unless fresh is set; that removes all cells.
func Open(dir string, p Fingerprint, fresh bool) (*Store, error) {
	s := &Store{dir}
	cells, label := filepath.Join(dir, "cells"), filepath.Join(dir, "sweep.json")
	if fresh {
		if err := os.RemoveAll(cells); err != nil {
			return nil, err
		}
	} else if text, err := os.ReadFile(label); err == nil {
		var there Fingerprint
		if err := json.Unmarshal(text, &there); err != nil {
			return nil, fmt.Errorf("%s was not written by a sweep, or not to its end: remove %s (%w)", label, dir, err)
		}

		finished, err := fs.Glob(os.DirFS(dir), "cells/*.json")
		if err != nil {
			return nil, err
		}
		if what := p.differs(there); what != "" && len(finished) > 0 {
			return nil, fmt.Errorf("%s has results of %s: --fresh discards them, or choose another directory with --out", dir, what)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}

	if err := os.MkdirAll(cells, 0o777); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return nil, err
	}
	return s, WriteFile(label, append(text, '\n'))
}

// Path returns the name of a file in the store.
func (s *Store) Path(name string) string { return filepath.Join(s.dir, name) }

// Load returns the result of a case of a job, if it is finished. Jobs have the numbers of their
// order.
func (s *Store) Load(job int, c measure.Case) (r measure.Result, done bool, err error) {
	path := s.cell(job, c)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	}
	if err == nil {
		if err = json.Unmarshal(text, &r); err != nil {
			err = fmt.Errorf("it was not written by a sweep, or not to its end: remove it (%w)", err)
		}
	}

	if err == nil && r.Case != c {
		err = fmt.Errorf("it is a result of %s", r.Title())
	}
	if err != nil {
		return r, false, fmt.Errorf("%s: %w", path, err)
	}
	return r, true, nil
}

// Save stores the result of its case of a job.
func (s *Store) Save(job int, r measure.Result) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(s.cell(job, r.Case), append(text, '\n'))
}

func (s *Store) cell(job int, c measure.Case) string {
	form := "out_of_place"
	if c.InPlace {
		form = "in_place"
	}
	name := fmt.Sprintf("%d-%s-%s-%s-%d_ranks-%s-%d.json", job+1, c.Collective, c.DType, c.Op, c.Ranks, form, c.Bytes)
	return filepath.Join(s.dir, "cells", name)
}

// WriteFile writes a file atomically.
func WriteFile(path string, text []byte) error {
	return atomicfile.Replace(path, false, func(f *os.File) error {
		_, err := f.Write(text)
		return err
	})
}
