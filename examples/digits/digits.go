// Package digits has the images of handwritten digits that the examples learn to read. README.md
// names their authors and licence.
//
// The images travel inside the program. [Load] decodes them; [Sets] divides them. All functions may
// be called concurrently.
package digits

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed" // the digits
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
)

// What the images are.
const (
	Side    = 8 // rows and columns of an image
	Pixels  = Side * Side
	MaxInk  = 16 // a pixel is 0 (white) to 16 (black)
	Classes = 10
)

//go:embed digits.csv.gz
var file []byte

// Load returns all images.
func Load[F float32 | float64]() (Set[F], error) {
	unzip, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return Set[F]{}, fmt.Errorf("digits.csv.gz: %w", err)
	}
	return parse[F](unzip)
}

// parse parses rows of 64 pixels and a label, separated by commas. An error names the line.
func parse[F float32 | float64](r io.Reader) (s Set[F], err error) {
	rows := bufio.NewScanner(r)
	for line := 1; rows.Scan(); line++ {
		fields := strings.Split(rows.Text(), ",")
		if len(fields) != Pixels+1 {
			return s, fmt.Errorf("digits: line %d has %d fields, want %d pixels and a label", line, len(fields), Pixels)
		}

		for i, field := range fields[:Pixels] {
			ink, err := strconv.ParseUint(field, 10, 8)
			if err != nil || ink > MaxInk {
				return s, fmt.Errorf("digits: line %d, pixel %d is %q, want 0 to %d", line, i, field, MaxInk)
			}
			s.Images = append(s.Images, F(ink)/MaxInk)
		}

		label, err := strconv.ParseUint(fields[Pixels], 10, 8)
		if err != nil || label >= Classes {
			return s, fmt.Errorf("digits: line %d, label is %q, want 0 to %d", line, fields[Pixels], Classes-1)
		}
		s.Labels = append(s.Labels, uint8(label))
	}

	if err := rows.Err(); err != nil {
		return s, fmt.Errorf("digits: after line %d: %w", s.Len(), err)
	}
	if s.Len() == 0 {
		return s, errors.New("digits: no rows")
	}
	return s, nil
}

// Set is some of the images, and their labels. Ranks of a process share sets, which none of them
// changes.
type Set[F float32 | float64] struct {
	Images []F // Pixels values from 0 to 1 each, row by row
	Labels []uint8
}

// Sets returns a training and a test set, about 80 to 20, divided by a permutation that depends on
// the seed only.
func Sets[F float32 | float64](seed uint64) (train, test Set[F], err error) {
	all, err := Load[F]()
	if err != nil {
		return train, test, err
	}
	train, test = all.split(seed)
	return train, test, nil
}

func (s Set[F]) split(seed uint64) (train, test Set[F]) {
	order, cut := rand.New(rand.NewPCG(seed, 0)).Perm(s.Len()), s.Len()*4/5
	return s.Pick(order[:cut]), s.Pick(order[cut:])
}

// Len returns the number of images.
func (s Set[F]) Len() int { return len(s.Labels) }

// Slice returns the images from lo to hi-1.
func (s Set[F]) Slice(lo, hi int) Set[F] {
	return Set[F]{s.Images[lo*Pixels : hi*Pixels], s.Labels[lo:hi]}
}

// Pick returns a copy of the images at the indices.
func (s Set[F]) Pick(indices []int) (picked Set[F]) {
	for _, i := range indices {
		image := s.Slice(i, i+1)
		picked.Images = append(picked.Images, image.Images...)
		picked.Labels = append(picked.Labels, image.Labels...)
	}
	return picked
}
