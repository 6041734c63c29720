// Package object encodes values of any type for other ranks, by package encoding/gob.
//
// # Model
//
// [Encode] writes a value with its type's description; [Decode] reads it into a type that gob finds
// compatible.
//
// # Concurrency
//
// All functions may be called concurrently.
//
// # Failure
//
// A value that gob cannot write, contains itself or is nested too deeply is an error, and so is a
// panic of a method of the value. Decoding checks lengths before it allocates memory.
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
	if err := checkDepth(reflect.ValueOf(&obj).Elem()); err != nil {
		return nil, fmt.Errorf("encoding a %v: %w", reflect.TypeFor[T](), err)
	}
	var b bytes.Buffer
	err = gob.NewEncoder(&b).Encode(parcel[T]{obj})
	return b.Bytes(), err
}

// Decode decodes the object of a rank, which the error names.
func Decode[T any](data []byte, rank int) (obj T, err error) {
	defer func() {
		if v := recover(); v != nil { // in a method of the object
			err = fmt.Errorf("decoding the object of rank %d panicked: %v", rank, v)
		}
	}()
	var p parcel[T]
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&p); err != nil {
		return obj, fmt.Errorf("the object of rank %d cannot be decoded to a %v: %w", rank, reflect.TypeFor[T](), err)
	}
	return p.Object, nil
}
