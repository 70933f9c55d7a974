package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/grpclog"
)

// `supervisor supervise PARENT` makes a directory in PARENT and runs processes
// for whoever holds the other end of its standard input: a test. It answers each
// line of JSON with a line of JSON. When its input ends, because the test has
// ended in whatever way, it kills every process and removes the directory.
//
// Should it be killed itself, the kernel kills its children, and the next
// supervisor removes the directory.

const prefix = "tread-bed-"

type request struct {
	Op string `json:"op"`
	// start, signal, stop, running
	Name    string            `json:"name"`
	Program string            `json:"program"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Signal  int               `json:"signal"`
	// request, await
	Method  string `json:"method"`
	URL     string `json:"url"`
	Token   string `json:"token"`
	Body    string `json:"body"`
	Seconds int    `json:"seconds"`
	// await: what has to run meanwhile
	Needs []string `json:"needs"`
	// history: the first one
	Revision int64 `json:"revision"`
	// restore: of the API server
	Port int `json:"port"`
}

type reply struct {
	Error    string `json:"error,omitempty"`
	Name     string `json:"name,omitempty"` // whose fault it is
	Dir      string `json:"dir,omitempty"`
	Pid      int    `json:"pid,omitempty"`
	Port     int    `json:"port,omitempty"`
	Ended    string `json:"ended,omitempty"`
	Status   int    `json:"status,omitempty"`
	Body     string `json:"body,omitempty"`
	Revision int64  `json:"revision,omitempty"`
	// history
	Writes []write `json:"writes,omitempty"`
}

type process struct {
	command *exec.Cmd
	ended   chan struct{}
	how     string
}

type supervisor struct {
	dir string
	// Where this one is, and the others beside it.
	binaries  string
	processes map[string]*process
	client    *http.Client
	// By their keys.
	marked map[string]held
}

func supervise() {
	// The kernel kills a child when the thread ends that started it: this one
	// has to be the main thread, and to stay with this function.
	runtime.LockOSThread()
	// An answer that nobody reads any more must not end this process.
	signal.Ignore(syscall.SIGPIPE)
	// etcd going away is what tests want; it is no news for their output.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	if len(os.Args) != 2 {
		fail(errors.New("supervise takes the directory to make its own one in"))
	}
	dir, err := makeDirectory(os.Args[1])
	if err != nil {
		fail(err)
	}
	binary, err := os.Executable()
	if err != nil {
		fail(err)
	}
	s := &supervisor{
		dir:       dir,
		binaries:  filepath.Dir(binary),
		processes: map[string]*process{},
		client: &http.Client{Transport: &http.Transport{
			// To the address that it gave the server itself.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			Proxy:           nil,
		}},
	}
	ctx, cancel := context.WithCancel(context.Background())
	requests := make(chan request)
	go read(requests)
	answer(reply{Dir: dir})
	for open := true; open; {
		select {
		case <-asked:
			open = false
		case r, more := <-requests:
			open = more
			if more {
				s.handle(ctx, r)
			}
		}
	}
	cancel()
	s.end()
}

// Reads until the other end closes.
func read(requests chan<- request) {
	defer close(requests)
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			r = request{Op: "no JSON: " + err.Error()}
		}
		requests <- r
	}
}

func answer(r reply) {
	line, err := json.Marshal(r)
	if err != nil {
		line = []byte(`{"error":"an answer that is no JSON"}`)
	}
	_, _ = os.Stdout.Write(append(line, '\n'))
}

// Processes are started in the one goroutine that is locked to its thread; what
// waits for a server goes on beside it, so that the end of the input is seen.
func (s *supervisor) handle(ctx context.Context, r request) {
	switch r.Op {
	case "start":
		answer(s.start(r))
	case "signal":
		answer(s.signal(r))
	case "stop":
		answer(s.stop(r))
	case "ended":
		answer(s.ended(r))
	case "port":
		answer(reservePort())
	case "key":
		answer(writeKey(filepath.Join(s.dir, r.Name)))
	case "authority":
		answer(writeAuthority(filepath.Join(s.dir, r.Name)))
	case "serving":
		answer(writeServing(filepath.Join(s.dir, r.Name)))
	case "fill-first":
		store := s.processes["etcd"]
		go func() { answer(s.fillFirst(ctx, store)) }()
	case "keep-first":
		go func() { answer(s.keepFirst(ctx)) }()
	case "mark":
		go func() { answer(s.mark(ctx)) }()
	case "restore":
		s.endOthers()
		server := s.processes["kube-apiserver"]
		go func() { answer(s.restore(ctx, r, server)) }()
	case "request":
		go func() { answer(s.request(ctx, r)) }()
	case "await":
		needed := map[string]*process{}
		for _, name := range r.Needs {
			needed[name] = s.processes[name]
		}
		go func() { answer(s.await(ctx, r, needed)) }()
	case "history":
		go func() { answer(s.history(ctx, r)) }()
	case "compact":
		go func() { answer(s.compact(ctx)) }()
	case "fill":
		go func() { answer(s.space(ctx, etcdserverpb.AlarmRequest_ACTIVATE)) }()
	case "empty":
		go func() { answer(s.space(ctx, etcdserverpb.AlarmRequest_DEACTIVATE)) }()
	default:
		answer(reply{Error: "the supervisor does not know " + r.Op})
	}
}

func (s *supervisor) start(r request) reply {
	if p := s.processes[r.Name]; p != nil && !p.hasEnded() {
		return reply{Error: r.Name + " runs already"}
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "logs", r.Name+".log"),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return reply{Error: err.Error()}
	}
	defer log.Close()
	program := r.Program
	if program == "" {
		program = s.toolFor(r.Args)
	}
	command := exec.Command(program, r.Args...)
	command.Dir = s.dir
	command.Env = os.Environ()
	for name, value := range r.Env {
		command.Env = append(command.Env, name+"="+value)
	}
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return reply{Error: err.Error()}
	}
	p := &process{command: command, ended: make(chan struct{})}
	s.processes[r.Name] = p
	go func() {
		_ = command.Wait()
		p.how = command.ProcessState.String()
		close(p.ended)
	}()
	return reply{Pid: command.Process.Pid}
}

// The binary with a tool that the first argument names.
func (s *supervisor) toolFor(args []string) string {
	switch {
	case len(args) > 0 && args[0] == "etcd":
		// This very binary, also when its file has been replaced since.
		return "/proc/self/exe"
	case len(args) > 0 && args[0] == "kube-apiserver":
		return filepath.Join(s.binaries, "kube-apiserver")
	default:
		return filepath.Join(s.binaries, "control-plane")
	}
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// To the process alone; its children are its own affair.
func (s *supervisor) signal(r request) reply {
	p := s.processes[r.Name]
	if p == nil {
		return reply{Error: r.Name + " was never started"}
	}
	if err := p.command.Process.Signal(syscall.Signal(r.Signal)); err != nil {
		return reply{Error: fmt.Sprintf("%s: %v", r.Name, err)}
	}
	return reply{Pid: p.command.Process.Pid}
}

// Kills a process with all that it started, and waits for its end.
func (s *supervisor) stop(r request) reply {
	p := s.processes[r.Name]
	if p == nil {
		return reply{Error: r.Name + " was never started"}
	}
	p.kill()
	<-p.ended
	return reply{Ended: p.how}
}

func (p *process) kill() {
	// The group outlives its leader when a grandchild is left.
	_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL)
}

func (s *supervisor) ended(r request) reply {
	p := s.processes[r.Name]
	if p == nil {
		return reply{Error: r.Name + " was never started"}
	}
	if p.hasEnded() {
		return reply{Ended: p.how}
	}
	return reply{Pid: p.command.Process.Pid}
}

func (s *supervisor) end() {
	for _, p := range s.processes {
		p.kill()
	}
	for _, p := range s.processes {
		<-p.ended
	}
	if os.Getenv("TREAD_BED_KEEP") != "" {
		// By another name, or the next supervisor would remove it.
		kept := filepath.Join(filepath.Dir(s.dir), "kept-"+filepath.Base(s.dir))
		if err := os.Rename(s.dir, kept); err != nil {
			fail(err)
		}
		fmt.Fprintln(os.Stderr, "TREAD_BED_KEEP is set: the logs are in", kept)
		return
	}
	if err := os.RemoveAll(s.dir); err != nil {
		fail(err)
	}
}

func (s *supervisor) request(ctx context.Context, r request) reply {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.Seconds)*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewBufferString(r.Body))
	if err != nil {
		return reply{Error: err.Error()}
	}
	request.Header.Set("Authorization", "Bearer "+r.Token)
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return reply{Error: err.Error()}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{Error: err.Error()}
	}
	return reply{Status: response.StatusCode, Body: string(body)}
}

// Asks until the answer is 200, or a process that this needs has ended.
func (s *supervisor) await(ctx context.Context, r request, needed map[string]*process) reply {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.Seconds)*time.Second)
	defer cancel()
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	last := "it was not asked yet"
	for {
		once := r
		once.Method, once.Seconds = http.MethodGet, 5
		got := s.request(ctx, once)
		if got.Status == http.StatusOK {
			return got
		}
		if ctx.Err() == nil {
			last = fmt.Sprintf("%d %s%s", got.Status, got.Error, got.Body)
		}
		for name, p := range needed {
			if p == nil {
				return reply{Error: name + " was never started", Name: name}
			}
			if p.hasEnded() {
				return reply{Error: fmt.Sprintf("%s has ended: %s", name, p.how), Name: name}
			}
		}
		select {
		case <-ctx.Done():
			return reply{Error: fmt.Sprintf("no 200 from %s within %d s; the last answer was: %s", r.URL, r.Seconds, last)}
		case <-pause.C:
		}
	}
}

// A port of 127.0.0.1 that nobody else gets while this process lives: bound, but
// not listened on. A server that shares ports can listen on it, and again after
// it was killed.
func reservePort() reply {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}
	if err == nil {
		err = unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		return reply{Error: "reserving a port: " + err.Error()}
	}
	address, err := unix.Getsockname(socket)
	if err != nil {
		return reply{Error: "reserving a port: " + err.Error()}
	}
	return reply{Port: address.(*unix.SockaddrInet4).Port}
}

func failed(err error) reply {
	if err != nil {
		return reply{Error: err.Error()}
	}
	return reply{}
}
