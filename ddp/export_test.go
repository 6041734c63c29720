package ddp

import "bytes"

// ReadBytes reads a file from memory, and returns its tensors.
func ReadBytes(file []byte) ([]Tensor, error) {
	c, err := readContents(bytes.NewReader(file), int64(len(file)), chooseAll)
	if err != nil {
		return nil, err
	}
	return c.all(), nil
}

// WriteBytes writes a file to memory.
func WriteBytes(tensors []Tensor) ([]byte, error) {
	var file bytes.Buffer
	err := writeTensors(&file, tensors, []byte("null"), 0)
	return file.Bytes(), err
}

// RemoveOlder removes checkpoints beside a file, so that so many remain.
func RemoveOlder(path string, most int) error { return removeOlder(path, most) }
