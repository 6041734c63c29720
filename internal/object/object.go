// Package object encodes values of any type for other ranks, by package encoding/gob.
//
// # Model
//
// [Encode] writes a value with its type's description; [Decode] reads it into a type that gob finds
// compatible. What gob leaves out follows in a second message, and Decode restores it: pointers to
// zero values, lists that are empty but not nil, maps that are nil in a list, signs of zeros.
//
// # Concurrency
//
// All functions may be called concurrently.
//
// # Failure
//
// A value that gob cannot write, would lose or would change, contains itself or is nested too
// deeply is an error with its path, and so is a panic of a method of the value. Decoding checks
// lengths before it allocates memory.
package object

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"reflect"
)

// parcel holds a value for gob, which omits nil pointers and interfaces in structs and cannot write
// them by themselves.
type parcel[T any] struct{ Object T }

// Encode encodes obj.
func Encode[T any](obj T) (data []byte, err error) {
	defer func() {
		if v := recover(); v != nil { // in a method of the object, or in gob
			err = fmt.Errorf("encoding a %v panicked: %v", reflect.TypeFor[T](), v)
		}
	}()
	w := walk{root: reflect.TypeFor[T](), types: map[reflect.Type]*typeInfo{}, inside: map[reference]bool{}}
	p := parcel[T]{obj}
	err = w.visit(reflect.ValueOf(&p.Object).Elem(), 0, false)

	var b bytes.Buffer
	encoder := gob.NewEncoder(&b)
	if err == nil {
		err = encoder.Encode(&p)
	}
	if err == nil && !w.omitted.isEmpty() {
		err = encoder.Encode(w.omitted)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding a %v: %w", w.root, err)
	}
	return b.Bytes(), nil
}

// Decode decodes the object of a rank, which the error names.
func Decode[T any](data []byte, rank int) (obj T, err error) {
	defer func() {
		if v := recover(); v != nil { // in a method of the object
			err = fmt.Errorf("decoding the object of rank %d panicked: %v", rank, v)
		}
	}()
	var p parcel[T]
	var omitted omission
	stream := bytes.NewReader(data)
	decoder := gob.NewDecoder(stream)
	err = decoder.Decode(&p)
	if err == nil && stream.Len() > 0 {
		err = decoder.Decode(&omitted)
	}

	if err != nil {
		return obj, fmt.Errorf("the object of rank %d cannot be decoded to a %v: all ranks need the same type, and the same calls of gob.Register (encoding/gob says: %w)", rank, reflect.TypeFor[T](), err)
	}
	omitted.restore(reflect.ValueOf(&p.Object).Elem(), omitted.Pointers)
	return p.Object, nil
}

// DecodeAll decodes the objects of all ranks, which lie one after another in data.
func DecodeAll[T any](data []byte, lengths []int) ([]T, error) {
	objs := make([]T, len(lengths))
	for r, n := range lengths {
		var err error
		if objs[r], err = Decode[T](data[:n], r); err != nil {
			return nil, err
		}
		data = data[n:]
	}
	return objs, nil
}
