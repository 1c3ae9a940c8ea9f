// A proxy before an S3 server that holds each request as long as S3 would, then passes it on: PUT, GET and LIST by times
// of their own. It is in Go, as the server is: one in Python took ten times as much of the processors, as much as the
// clients that are measured. Benchmarks alone need it, the tests do not.
//
// `slow_s3 HOST:PORT PUT_MS GET_MS LIST_MS` prints its own endpoint, and once its input ends the seconds of processor
// that it took, and how many requests of each kind it passed on.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

var held = map[string]time.Duration{}
var passed = map[string]int{}
var lock sync.Mutex

func main() {
	target := os.Args[1]
	for i, kind := range []string{"PUT", "GET", "LIST"} {
		ms, err := strconv.ParseFloat(os.Args[2+i], 64)
		if err != nil {
			panic(err)
		}
		held[kind] = time.Duration(ms * float64(time.Millisecond))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(client, target)
		}
	}()
	io.Copy(io.Discard, os.Stdin)
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	seconds := time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
	lock.Lock()
	defer lock.Unlock()
	var counts []string
	for kind, count := range passed {
		counts = append(counts, fmt.Sprintf("%s=%d", kind, count))
	}
	sort.Strings(counts)
	fmt.Printf("%.1f %s\n", seconds, strings.Join(counts, " "))
}

func serve(client net.Conn, target string) {
	defer client.Close()
	above, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer above.Close()
	fromClient, fromAbove := bufio.NewReader(client), bufio.NewReader(above)
	for {
		head, err := headOf(fromClient)
		if err != nil {
			return
		}
		line, _, _ := bytes.Cut(head, []byte("\r\n"))
		command, _, _ := strings.Cut(string(line), " ")
		kind := command
		if bytes.Contains(line, []byte("list-type=")) {
			kind = "LIST"
		}
		lock.Lock()
		passed[kind]++
		lock.Unlock()
		if expected := header(head, "expect"); strings.EqualFold(expected, "100-continue") {
			// The client sends the body only then; the server, which gets both at once, need not be asked.
			client.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
			at := bytes.Index(bytes.ToLower(head), []byte("\r\nexpect:"))
			rest := head[at+2:]
			head = append(head[:at+2:at+2], rest[bytes.Index(rest, []byte("\r\n"))+2:]...)
		}
		request, err := withBody(fromClient, head, false)
		if err != nil {
			return
		}
		time.Sleep(held[kind])
		if _, err = above.Write(request); err != nil {
			return
		}
		if head, err = headOf(fromAbove); err != nil {
			return
		}
		answer, err := withBody(fromAbove, head, command == "HEAD")
		if err != nil {
			return
		}
		if _, err = client.Write(answer); err != nil {
			return
		}
	}
}

func headOf(reader *bufio.Reader) ([]byte, error) {
	var head []byte
	for {
		line, err := reader.ReadSlice('\n')
		head = append(head, line...)
		if err != nil || len(head) > 64*1024 {
			return nil, io.ErrUnexpectedEOF
		}
		if len(line) == 2 {
			return head, nil
		}
	}
}

func header(head []byte, name string) string {
	for _, line := range bytes.Split(head, []byte("\r\n"))[1:] {
		key, value, _ := bytes.Cut(line, []byte(":"))
		if strings.EqualFold(string(key), name) {
			return strings.TrimSpace(string(value))
		}
	}
	return ""
}

// withBody returns a head with the body that follows it, as it was sent.
func withBody(reader *bufio.Reader, head []byte, none bool) ([]byte, error) {
	if none {
		return head, nil
	}
	if strings.Contains(strings.ToLower(header(head, "transfer-encoding")), "chunked") {
		for {
			line, err := reader.ReadBytes('\n')
			if err != nil {
				return nil, err
			}
			size, err := strconv.ParseInt(strings.TrimSpace(strings.Split(string(line), ";")[0]), 16, 32)
			if err != nil {
				return nil, err
			}
			part := make([]byte, size+2)
			if _, err = io.ReadFull(reader, part); err != nil {
				return nil, err
			}
			head = append(append(head, line...), part...)
			if size == 0 {
				return head, nil
			}
		}
	}
	length, _ := strconv.Atoi(header(head, "content-length"))
	body := make([]byte, length)
	if _, err := io.ReadFull(reader, body); err != nil {
		return nil, err
	}
	return append(head, body...), nil
}
