package ddp

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"unicode/utf8"
)

// header is what a file says of itself.
type header struct {
	metadata map[string]string
	tensors  []storedTensor // in the order of the data
}

// storedTensor is a tensor of a file.
type storedTensor struct {
	name string
	tensorEntry
}

// count returns the number of elements.
func (e *tensorEntry) count() int {
	size := newStored[e.DType](0).dtype().Size()
	return int((e.Offsets[1] - e.Offsets[0]) / uint64(size))
}

// text returns the type and the shape, which a file may make long.
func (e *tensorEntry) text() string {
	return fmt.Sprintf("%.100s %.100s", e.DType, fmt.Sprint(e.Shape))
}

// byName returns the tensors by their names.
func (h *header) byName() map[string]*storedTensor {
	all := map[string]*storedTensor{}
	for i := range h.tensors {
		all[h.tensors[i].name] = &h.tensors[i]
	}
	return all
}

var errTorn = errors.New("it ends too early: it was not written to its end")

// readHeader reads the header of a file of that many bytes, which then has the data that the header
// describes.
func readHeader(r io.Reader, size int64) (*header, error) {
	var length uint64
	if err := binary.Read(r, binary.LittleEndian, &length); err != nil {
		return nil, errTorn
	}
	if length > maxHeader {
		return nil, errors.New("it is not a safetensors file")
	}
	if uint64(size) < 8+length {
		return nil, errTorn
	}

	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, errTorn
	}
	return parseHeader(text, uint64(size)-8-length)
}

// parseHeader returns what a header says of so many bytes of data.
func parseHeader(text []byte, dataBytes uint64) (*header, error) {
	members, err := decodeObject(text)
	if err != nil {
		return nil, fmt.Errorf("it is not a safetensors file, or was changed: its header is no JSON (%w)", err)
	}
	h := &header{}
	if h.metadata, err = decodeMetadata(members[metadataKey]); err != nil {
		return nil, fmt.Errorf("its metadata are not texts (%w)", err)
	}
	if v, ok := h.metadata[versionKey]; ok && v != version {
		return nil, fmt.Errorf("it has version %.100q, and this program reads version %s", v, version)
	}

	delete(members, metadataKey)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		t := storedTensor{name: name}
		if err := t.decode(members[name]); err != nil {
			return nil, fmt.Errorf("its tensor %.100q is not described as in a safetensors file (%w)", name, err)
		}
		h.tensors = append(h.tensors, t)
	}
	slices.SortStableFunc(h.tensors, func(a, b storedTensor) int { return slices.Compare(a.Offsets[:], b.Offsets[:]) })
	return h, h.checkData(dataBytes)
}

// checkData returns in what the data are not what the tensors need: each byte belongs to one.
func (h *header) checkData(dataBytes uint64) error {
	at := uint64(0)
	for i, t := range h.tensors {
		switch begin, end := t.Offsets[0], t.Offsets[1]; {
		case end < begin:
			return fmt.Errorf("its tensor %.100q ends at %d, before it begins at %d", t.name, end, begin)
		case begin < at:
			return fmt.Errorf("its tensors %.100q and %.100q overlap", h.tensors[i-1].name, t.name)
		case begin > at:
			return fmt.Errorf("the bytes from %d to %d of its data belong to no tensor", at, begin)
		}
		at = t.Offsets[1]
	}

	switch {
	case dataBytes < at:
		return errTorn
	case dataBytes > at:
		return fmt.Errorf("%d bytes follow the tensors", dataBytes-at)
	}

	for _, t := range h.tensors {
		made := newStored[t.DType]
		if made == nil {
			return fmt.Errorf("its tensor %.100q has the type %.100q, which this program does not read", t.name, t.DType)
		}
		size, length := uint64(made(0).dtype().Size()), t.Offsets[1]-t.Offsets[0]
		if length%size != 0 || length/size > math.MaxInt || !isShapeOf(t.Shape, int(length/size)) {
			return fmt.Errorf("its tensor %.100q is %s, and has %d bytes", t.name, t.text(), length)
		}
	}
	return nil
}

// decode sets an entry from the JSON of a header.
func (e *tensorEntry) decode(text []byte) error {
	members, err := decodeObject(text)
	if err != nil {
		return err
	}
	for _, key := range []string{"dtype", "shape", "data_offsets"} {
		if members[key] == nil {
			return fmt.Errorf("it has no %s", key)
		}
	}
	if err := json.Unmarshal(members["dtype"], &e.DType); err != nil {
		return fmt.Errorf("dtype: %w", err)
	}

	shape, err := decodeNumbers(members["shape"])
	if err != nil {
		return fmt.Errorf("shape: %w", err)
	}
	e.Shape = make([]int, len(shape))
	for i, extent := range shape {
		if extent > math.MaxInt {
			return fmt.Errorf("shape: %d is too large", extent)
		}
		e.Shape[i] = int(extent)
	}

	offsets, err := decodeNumbers(members["data_offsets"])
	if err == nil && len(offsets) != len(e.Offsets) {
		err = fmt.Errorf("%d numbers", len(offsets))
	}
	if err != nil {
		return fmt.Errorf("data_offsets: %w", err)
	}
	copy(e.Offsets[:], offsets)
	return nil
}

// decodeMetadata returns the metadata, of which a file may have none.
func decodeMetadata(text []byte) (map[string]string, error) {
	if text == nil || string(text) == "null" {
		return nil, nil
	}
	members, err := decodeObject(text)
	if err != nil {
		return nil, err
	}

	all := map[string]string{}
	for key, text := range members {
		var value *string // nil for null
		if err := json.Unmarshal(text, &value); err != nil || value == nil {
			return nil, cmp.Or(err, errors.New("null"))
		}
		all[key] = *value
	}
	return all, nil
}

// decodeObject returns the members of a JSON object. A name that stands twice is an error: readers
// differ in which of them counts.
func decodeObject(text []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return nil, cmp.Or(err, errors.New("it is no object"))
	}

	all := map[string]json.RawMessage{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}

		key := name.(string) // Token takes nothing else here
		if _, isTaken := all[key]; isTaken {
			return nil, fmt.Errorf("it has the name %.100q twice", key)
		}
		all[key] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, cmp.Or(err, errors.New("more follows it"))
	}
	return all, nil
}

// decodeNumbers returns the numbers of a JSON list.
func decodeNumbers(text []byte) ([]uint64, error) {
	var list []*uint64 // nil for null
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	if list == nil || slices.Contains(list, nil) {
		return nil, errors.New("null")
	}
	all := make([]uint64, len(list))
	for i, n := range list {
		all[i] = *n
	}
	return all, nil
}
