package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed" // the digits travel inside the program
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
)

const (
	pixels  = 64 // an image is 8x8, row by row
	maxInk  = 16 // a pixel is 0 (white) to 16 (black)
	classes = 10
)

// digitsFile is described, with its authors and licence, in data/README.md.
//
//go:embed data/digits.csv.gz
var digitsFile []byte

// dataset is a list of images, with pixels scaled to 0..1, and their labels. It
// is read-only, so all ranks of a process share it.
type dataset[F float] struct {
	images []F // len(labels) rows of pixels values
	labels []uint8
}

func (d *dataset[F]) len() int { return len(d.labels) }

// batch copies the images and labels at the given indices together.
func (d *dataset[F]) batch(indices []int) (images []F, labels []uint8) {
	images = make([]F, 0, len(indices)*pixels)
	labels = make([]uint8, 0, len(indices))
	for _, i := range indices {
		images = append(images, d.images[i*pixels:(i+1)*pixels]...)
		labels = append(labels, d.labels[i])
	}
	return images, labels
}

// split divides the rows into a training and a test set, about 80 to 20, by a
// permutation that depends only on the seed.
func (d *dataset[F]) split(seed uint64) (train, test *dataset[F]) {
	order := rand.New(rand.NewPCG(seed, 0)).Perm(d.len())
	cut := d.len() * 4 / 5
	return d.pick(order[:cut]), d.pick(order[cut:])
}

func (d *dataset[F]) pick(indices []int) *dataset[F] {
	images, labels := d.batch(indices)
	return &dataset[F]{images, labels}
}

// loadDigits reads the embedded digits.
func loadDigits[F float]() (*dataset[F], error) {
	unzip, err := gzip.NewReader(bytes.NewReader(digitsFile))
	if err != nil {
		return nil, fmt.Errorf("digits.csv.gz: %w", err)
	}
	return parseDigits[F](unzip)
}

// parseDigits parses rows of 64 pixels and a label, separated by commas. The error of an
// invalid row names its line.
func parseDigits[F float](r io.Reader) (*dataset[F], error) {
	var d dataset[F]
	rows := bufio.NewScanner(r)
	for line := 1; rows.Scan(); line++ {
		fields := strings.Split(rows.Text(), ",")
		if len(fields) != pixels+1 {
			return nil, fmt.Errorf("digits: line %d has %d fields, want %d pixels and a label", line, len(fields), pixels)
		}
		for i, field := range fields[:pixels] {
			ink, err := strconv.ParseUint(field, 10, 8)
			if err != nil || ink > maxInk {
				return nil, fmt.Errorf("digits: line %d, pixel %d is %q, want 0 to %d", line, i, field, maxInk)
			}
			d.images = append(d.images, F(ink)/maxInk)
		}
		label, err := strconv.ParseUint(fields[pixels], 10, 8)
		if err != nil || label >= classes {
			return nil, fmt.Errorf("digits: line %d, label is %q, want 0 to %d", line, fields[pixels], classes-1)
		}
		d.labels = append(d.labels, uint8(label))
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("digits: after line %d: %w", d.len(), err)
	}
	if d.len() == 0 {
		return nil, errors.New("digits: no rows")
	}
	return &d, nil
}
