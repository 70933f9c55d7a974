//! From a component to machine code.
//!
//! A compiler is the largest piece of code that a stranger's bytes reach. It
//! works on an engine of its own, which is thrown away, and best in a process
//! of its own, which can be killed: [`Compiler::Child`] and [`serve`].

use crate::clock::{self, Taken, Time, TooLong};
use crate::failure::{failure, no_room};
use crate::limits::Limits;
use crate::serving::{Allocator, shared_config};
use anyhow::Context as _;
use rustix::process::{Pid, Resource, Rlimit, Signal, setrlimit};
use rustix::thread::gettid;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tread_model::verdict::{Failure, FailureKind};
use wasmtime::{Engine, OptLevel, Strategy};

/// Where components are compiled.
#[derive(Debug, Clone, Default)]
pub enum Compiler {
    /// In threads of their own. Those that take too long cannot be stopped, only
    /// left behind: for components that come with tread, and on a user's machine.
    #[default]
    InProcess,
    /// In a process that runs [`serve`] on its standard input and output. It
    /// is killed when it takes too much processor time, and cannot take more memory than
    /// [`Limits`] say.
    Child {
        /// The program, usually tread itself.
        program: PathBuf,
        /// What makes it serve.
        args: Vec<OsString>,
    },
}

impl Compiler {
    /// Compiles a component for engines with this allocator.
    pub(crate) fn compile(
        &self,
        component: &[u8],
        allocator: Allocator,
        limits: &Limits,
    ) -> Result<Vec<u8>, Failure> {
        match self {
            Compiler::InProcess => in_threads(component, allocator, limits),
            Compiler::Child { program, args } => {
                let mut command = Command::new(program);
                in_child(command.args(args), component, allocator, limits)
            }
        }
    }
}

/// Compiles the component on standard input and writes what came of it to
/// standard output: the other side of [`Compiler::Child`].
pub fn serve(limits: &Limits) -> anyhow::Result<()> {
    let mut input = io::stdin().lock();
    let mut job = [0; JOB_BYTES];
    input.read_exact(&mut job)?;
    let (allocator, memory) = read_job(&job).context("this is no job for the compiler")?;
    let mut component = Vec::new();
    input.take(limits.module_bytes as u64 + 1).read_to_end(&mut component)?;
    let limit = Rlimit { current: Some(memory), maximum: Some(memory) };
    // Limits the memory that it writes to, as a cluster does, and not its address
    // space.
    setrlimit(Resource::Data, limit)?;
    // It ends by itself when nobody is there to end it, because its parent is gone.
    let seconds = Some(limits.compile_time.as_secs().saturating_add(1));
    setrlimit(Resource::Cpu, Rlimit { current: seconds, maximum: seconds })?;
    // One thread: it needs less memory, and the same on every machine.
    let answer = match compile(&component, allocator, Threads::One) {
        Ok(compiled) => [&[COMPILED], compiled.as_slice()].concat(),
        Err(message) => [&[REFUSED], message.as_bytes()].concat(),
    };
    let mut output = io::stdout().lock();
    output.write_all(&answer)?;
    output.flush()?;
    Ok(())
}

/// Stack for the recursion in the compiler; pages that are not used cost nothing.
const COMPILER_STACK: usize = 16 << 20;

const COMPILED: u8 = 0;
const REFUSED: u8 = 1;

/// What stands before the component on the way to the child.
const JOB: [u8; 16] = *b"tread compile 1\n";
const JOB_BYTES: usize = JOB.len() + 1 + 8;

fn job(allocator: Allocator, memory: u64) -> Vec<u8> {
    let mut job = JOB.to_vec();
    job.push(u8::from(allocator == Allocator::Pooling));
    job.extend(memory.to_le_bytes());
    job
}

fn read_job(job: &[u8; JOB_BYTES]) -> Option<(Allocator, u64)> {
    let (allocator, memory) = job.strip_prefix(&JOB)?.split_first()?;
    let allocator = match allocator {
        0 => Allocator::OnDemand,
        1 => Allocator::Pooling,
        _ => return None,
    };
    Some((allocator, u64::from_le_bytes(memory.try_into().ok()?)))
}

/// How many functions are compiled at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Threads {
    One,
    OfEachCore,
}

fn compile(component: &[u8], allocator: Allocator, threads: Threads) -> Result<Vec<u8>, String> {
    let mut config = shared_config(allocator);
    config
        .strategy(Strategy::Cranelift)
        // Policies come optimised from their own compiler. Doing it again costs
        // a fifth more time here, saves none in a call, and is more to trust.
        .cranelift_opt_level(OptLevel::None)
        .cranelift_nan_canonicalization(true)
        .parallel_compilation(threads == Threads::OfEachCore);
    Engine::new(&config)
        .and_then(|engine| engine.precompile_component(component))
        .map_err(|error| format!("{error:#}"))
}

fn in_threads(component: &[u8], allocator: Allocator, limits: &Limits) -> Result<Vec<u8>, Failure> {
    let not_started =
        |error: &dyn std::error::Error| no_room(format!("the compiler cannot be started: {error}"));
    // The compiler spreads its work over the threads of the pool that it is in.
    let threads: Arc<Mutex<Vec<Pid>>> = Arc::default();
    let started = Arc::clone(&threads);
    let pool = rayon::ThreadPoolBuilder::new()
        .thread_name(|_| "tread-compiler".to_owned())
        .stack_size(COMPILER_STACK)
        .start_handler(move |_| {
            started.lock().unwrap_or_else(PoisonError::into_inner).push(gettid());
        })
        .build()
        .map_err(|error| not_started(&error))?;
    let (sender, receiver) = mpsc::channel();
    let component = component.to_vec();
    std::thread::Builder::new()
        .name("tread-compiler".to_owned())
        .spawn(move || {
            // If it took too long, the other side is gone.
            let _ =
                sender.send(pool.install(|| compile(&component, allocator, Threads::OfEachCore)));
        })
        .map_err(|error| not_started(&error))?;
    let threads = || threads.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let at_once = || u32::try_from(threads().len()).unwrap_or(u32::MAX);
    let taken = || threads().into_iter().map(clock::of_thread).sum();
    match answer_in_time(&receiver, limits.time_to_compile(), at_once, taken) {
        Ok(Some(compiled)) => compiled.map_err(failed),
        Ok(None) => Err(failed("the compiler crashed")),
        Err(too_long) => Err(too_slow(too_long)),
    }
}

/// The least time between two looks at the processor time, or whether a child has ended.
const LOOK: Duration = Duration::from_millis(10);
/// So long after its answer a child ends, however busy the machine is.
const SOON: Duration = Duration::from_secs(10);

/// Waits for an answer. `taken` gives the processor time so far, which `at_once`
/// threads use up together. None: the sender is gone without an answer.
fn answer_in_time<T>(
    receiver: &Receiver<T>,
    time: Time,
    at_once: impl Fn() -> u32,
    taken: impl Fn() -> Duration,
) -> Result<Option<T>, TooLong> {
    let begun = Instant::now();
    loop {
        let left = time.left(Taken { processor: taken(), wall: begun.elapsed() })?;
        let wait = left.checked_div(at_once()).unwrap_or(left).max(LOOK);
        match receiver.recv_timeout(wait.min(time.wall)) {
            Ok(answer) => return Ok(Some(answer)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn in_child(
    command: &mut Command,
    component: &[u8],
    allocator: Allocator,
    limits: &Limits,
) -> Result<Vec<u8>, Failure> {
    command.env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = Reaped(
        command
            .spawn()
            .map_err(|error| no_room(format!("the compiler cannot be started: {error}")))?,
    );
    let (Some(mut input), Some(output)) = (child.0.stdin.take(), child.0.stdout.take()) else {
        return Err(no_room("the compiler cannot be reached"));
    };
    let memory = limits.memory_to_compile(component.len());
    let job = job(allocator, memory);
    let (process, time) = (child.0.id(), limits.time_to_compile());
    let taken = || clock::of_process(process);
    let answer = std::thread::scope(|scope| {
        scope.spawn(move || {
            // If the child is gone, its answer is missing: this error adds nothing.
            let _ = input.write_all(&job).and_then(|()| input.write_all(component));
        });
        let (sender, receiver) = mpsc::channel();
        scope.spawn(move || {
            let mut answer = Vec::new();
            let read = output.take(memory).read_to_end(&mut answer);
            let _ = sender.send(read.map(|_| answer));
        });
        let answer = answer_in_time(&receiver, time, || 1, taken);
        // An answer ends where the child does, or a moment before that.
        if let Ok(Some(Ok(_))) = &answer {
            child.ends_soon();
        }
        // Whatever the answer is, the child ends here, and with it the two threads.
        child.kill();
        answer
    });
    // The system forgets it once the child is waited for.
    let taken = taken();
    match answer {
        Err(too_long) => Err(too_slow(too_long)),
        Ok(None) => Err(failed("the compiler's answer cannot be read")),
        Ok(Some(Err(error))) => Err(no_room(format!("the compiler cannot be reached: {error}"))),
        // It had ended before it was killed here, perhaps in the middle of its answer.
        Ok(Some(Ok(_))) if child.was_killed() => Err(killed(time, taken)),
        Ok(Some(Ok(mut answer))) => match answer.first() {
            Some(&COMPILED) => {
                answer.remove(0);
                Ok(answer)
            }
            Some(&REFUSED) => {
                answer.remove(0);
                Err(failed(String::from_utf8_lossy(&answer)))
            }
            _ => Err(failed(format!(
                "the compiler crashed, or needed more than {} MiB of memory: split functions that \
                 are very large, and leave out what is not needed",
                memory >> 20
            ))),
        },
    }
}

/// A child process that is ended when this is dropped.
struct Reaped(Child);

impl Reaped {
    fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
    }

    /// Waits for its end, and not for long.
    fn ends_soon(&mut self) {
        let begun = Instant::now();
        while let Ok(None) = self.0.try_wait()
            && begun.elapsed() < SOON
        {
            std::thread::sleep(LOOK);
        }
    }

    /// Waits for its end, and says whether it was killed.
    fn was_killed(&mut self) -> bool {
        let signal = self.0.wait().ok().and_then(|status| status.signal());
        signal == Some(Signal::KILL.as_raw())
    }
}

impl Drop for Reaped {
    fn drop(&mut self) {
        self.kill();
        let _ = self.0.wait();
    }
}

fn failed(message: impl AsRef<str>) -> Failure {
    failure(FailureKind::CompileFailed, message)
}

/// Why a compiler was killed, though not from here. The system does it for lack of memory, and by the
/// limit that [`serve`] sets, if this side was too busy to see in time that it took too long.
fn killed(time: Time, taken: Duration) -> Failure {
    match time.left(Taken { processor: taken, wall: Duration::ZERO }) {
        Err(too_long) => too_slow(too_long),
        Ok(_) => no_room(
            "the compiler was killed from outside, perhaps by the system since memory ran out: give \
             tread more memory if that happens again",
        ),
    }
}

fn too_slow(too_long: TooLong) -> Failure {
    let what = match too_long {
        TooLong::Processor(limit) => format!("took longer than {} s of", limit.as_secs_f64()),
        TooLong::Wall(limit) => {
            format!("took longer than {} s, though little", limit.as_secs_f64())
        }
    };
    failure(FailureKind::CompileTimeout, format!("compiling it {what} processor time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_reads_back_as_it_was_written() {
        for allocator in [Allocator::Pooling, Allocator::OnDemand] {
            let job = job(allocator, 12_345);
            assert_eq!(read_job(&job.try_into().unwrap()), Some((allocator, 12_345)));
        }
        assert_eq!(read_job(&[0; JOB_BYTES]), None);
    }

    #[test]
    fn a_compiler_that_the_system_ends_for_its_processor_time_took_too_long() {
        let time = Limits::default().time_to_compile();
        for (taken, kind) in
            [(Duration::ZERO, FailureKind::NoRoom), (time.processor, FailureKind::CompileTimeout)]
        {
            assert_eq!(killed(time, taken).kind, kind, "{taken:?}");
        }
    }
}
