//! An HTTP/2 server at the level of frames, which answers, refuses and excludes streams as a test scripts it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{self, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::support::reset_when_dropped;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

const REFUSED_STREAM: u32 = 7;

/// The server's step once a request has arrived in full.
pub(crate) enum Then {
    /// Wait for more requests.
    Wait,
    /// Carry out and answer these streams.
    Answer(Vec<u32>),
    /// Refuse these streams, announce a limit of this many, and carry out and answer the others.
    Refuse { refused: Vec<u32>, limit: u32, answered: Vec<u32> },
    /// Carry out and answer these streams, exclude all above the last of them, and close the connection.
    GoAway(Vec<u32>),
    /// Reset the connection.
    Reset,
}

/// A scripted server. Dropping it closes its connections.
pub(crate) struct Frames {
    address: SocketAddr,
    served: Arc<Mutex<u32>>,
    connections: Arc<Mutex<usize>>,
    _tasks: JoinSet<()>,
}

impl Frames {
    /// Starts a server. `script` gets the number of the connection, from 0, and the streams whose requests have arrived
    /// on it and are not answered.
    pub(crate) async fn start(script: impl Fn(usize, &[u32]) -> Then + Clone + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (served, connections) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
        let (count, number) = (Arc::clone(&served), Arc::clone(&connections));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let number = {
                    let mut number = number.lock().unwrap();
                    *number += 1;
                    *number - 1
                };
                let (script, count) = (script.clone(), Arc::clone(&count));
                open.spawn(async move {
                    // The client may close the connection at any time.
                    let _ = serve(stream, |waiting| script(number, waiting), &count).await;
                });
            }
        });
        Self { address, served, connections, _tasks: tasks }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Returns the number of requests that the server has carried out.
    pub(crate) fn served(&self) -> u32 {
        *self.served.lock().unwrap()
    }

    pub(crate) fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

async fn serve(mut stream: TcpStream, script: impl Fn(&[u32]) -> Then + Send, served: &Mutex<u32>) -> io::Result<()> {
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await?;
    write(&mut stream, SETTINGS, 0, 0, &[]).await?;
    let mut waiting = Vec::new();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, flags) = (head[3], head[4]);
        let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await?;
        match kind {
            SETTINGS if flags & ACK == 0 => write(&mut stream, SETTINGS, ACK, 0, &[]).await?,
            PING if flags & ACK == 0 => write(&mut stream, PING, ACK, 0, &payload).await?,
            HEADERS | DATA if flags & END_STREAM != 0 => waiting.push(id),
            _ => continue,
        }
        if !matches!(kind, HEADERS | DATA) {
            continue;
        }
        match script(&waiting) {
            Then::Wait => {}
            Then::Answer(streams) => answer(&mut stream, &streams, &mut waiting, served).await?,
            Then::Refuse { refused, limit, answered } => {
                for id in &refused {
                    write(&mut stream, RST_STREAM, 0, *id, &REFUSED_STREAM.to_be_bytes()).await?;
                }
                waiting.retain(|id| !refused.contains(id));
                let most_streams = [&[0, 3][..], &limit.to_be_bytes()].concat();
                write(&mut stream, SETTINGS, 0, 0, &most_streams).await?;
                answer(&mut stream, &answered, &mut waiting, served).await?;
            }
            Then::GoAway(streams) => {
                let last = streams.iter().copied().max().unwrap_or(0);
                answer(&mut stream, &streams, &mut waiting, served).await?;
                let excluded = [last.to_be_bytes(), 0_u32.to_be_bytes()].concat();
                write(&mut stream, GOAWAY, 0, 0, &excluded).await?;
                // The client closes the connection once nothing is left on it.
                let mut rest = Vec::new();
                stream.read_to_end(&mut rest).await?;
                return Ok(());
            }
            Then::Reset => {
                reset_when_dropped(&stream)?;
                return Ok(());
            }
        }
    }
}

/// Carries out requests, and answers each with 200.
async fn answer(
    stream: &mut TcpStream,
    streams: &[u32],
    waiting: &mut Vec<u32>,
    served: &Mutex<u32>,
) -> io::Result<()> {
    // The static table's entry 8 is `:status: 200` (RFC 7541, appendix A).
    const STATUS_200: u8 = 0x88;
    for id in streams {
        *served.lock().unwrap() += 1;
        write(stream, HEADERS, END_HEADERS | END_STREAM, *id, &[STATUS_200]).await?;
    }
    waiting.retain(|id| !streams.contains(id));
    Ok(())
}

async fn write(stream: &mut TcpStream, kind: u8, flags: u8, id: u32, payload: &[u8]) -> io::Result<()> {
    let [_, length @ ..] = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let frame = [&length[..], &[kind, flags], &id.to_be_bytes(), payload].concat();
    stream.write_all(&frame).await
}
